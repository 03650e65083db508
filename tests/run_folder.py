"""The folder of one run of the tests: everything that any of its processes writes outside of a user's home lies here.

pytest/NAME     pytest's temporary folders of a part, one for each worker
WORKER/         what a worker's programs take for /tmp, and Airflow's home
known/          the secrets and command lines that the workers saw, for the search afterwards
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "KSTREAM_TEST_RUN"
_ATTEMPTS = 5


def make_run_folder() -> Path:
    """Return a new private folder. Its path is short: some of what lies in it becomes the address of a socket."""
    return Path(tempfile.mkdtemp(prefix="kstream-test-"))


def environment_of(run: Path) -> dict[str, str]:
    """Return the environment of a part of the run."""
    return {**os.environ, VARIABLE: str(run)}


class WorkerFolder:
    """A worker's part of the run folder, and what its processes must know to stay in it."""

    def __init__(self, run: Path, worker: str) -> None:
        self.run = run
        self.worker = worker
        self.home = run / worker

    def enter(self) -> None:
        """Send this process and its children here: whatever Python, the JVMs, Spark and Airflow write on their own."""
        temporary = self.home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        os.environ |= {
            "TMPDIR": str(temporary),
            "AIRFLOW_HOME": str(self.home / "airflow"),
            "SPARK_LOCAL_DIRS": str(temporary),
            "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData",
            "MAVEN_OPTS": "-XX:-UsePerfData",
        }
        tempfile.tempdir = None

    def known(self) -> Path:
        """Return the file of the secrets that this worker saw."""
        folder = self.run / "known"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{self.worker}.json"


def enter_run_folder() -> WorkerFolder:
    """Enter the folder of the run that this process belongs to; without one, make one that ends with this process."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(run := make_run_folder())
        atexit.register(remove, run)
    folder = WorkerFolder(Path(os.environ[VARIABLE]), os.environ.get("PYTEST_XDIST_WORKER", "main"))
    folder.enter()
    return folder


def remove(run: Path) -> None:
    """Delete the folder, with what processes that are just ending still write into it.

    Raises OSError: when it can't be deleted.
    """
    for _ in range(_ATTEMPTS):
        shutil.rmtree(run, ignore_errors=True)
    if run.exists():
        shutil.rmtree(run)
