"""The folder of one run of the tests: everything that any of its processes writes outside of a user's home lies here.

pytest/NAME     pytest's temporary folders of a part, one for each worker
WORKER/         what a worker's programs take for /tmp, and Airflow's home
known/          the secrets and command lines that the workers saw, for the search afterwards
mN, mN-run/     a copy of the checkout for planted defects, and the run folder of the tests that must catch them
in-use          locked for as long as a process of the run lives: the next run deletes a folder that no process uses

A second folder of the same name lies in memory, for small files that live for a moment; both are deleted together.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "KSTREAM_TEST_RUN"
_ATTEMPTS = 5
_PREFIX = "kstream-test-"
_IN_USE = "in-use"
_MEMORY = Path("/dev/shm")


def make_run_folder() -> tuple[Path, int]:
    """Return a new private folder, and the file descriptor whose last copy says by its end that nobody uses it.

    Its path is short: some of what lies in it becomes the address of a socket.
    """
    run = Path(tempfile.mkdtemp(prefix=_PREFIX))
    # It gets its name when it is locked: nobody can take a folder that is being made for one that was left.
    draft = run / f"{_IN_USE}.draft"
    use = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(use, fcntl.LOCK_EX)
    draft.rename(run / _IN_USE)
    return run, use


def remove_what_was_left() -> None:
    """End what still runs in the folders of runs that were killed together with their guard, and delete these."""
    for in_use in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_IN_USE}"):
        try:
            use = os.open(in_use, os.O_RDWR)
        except OSError:  # another user's, or just deleted
            continue
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Imported late: it takes longer than all that a run does before its first part.
            from airflow_kstream.minicluster.processes import below, end

            end(below(in_use.parent))
            remove(in_use.parent)
        except BlockingIOError:
            continue
        finally:
            os.close(use)


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
        }
        tempfile.tempdir = None
        for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "MAVEN_OPTS"):
            os.environ[name] = " ".join(java_options())

    def in_memory(self) -> Path:
        """Return this worker's folder in memory; the temporary one where the system has none."""
        if not os.access(_MEMORY, os.W_OK):
            return Path(tempfile.gettempdir())
        memory_of(self.run).mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = memory_of(self.run) / self.worker
        folder.mkdir(exist_ok=True)
        return folder

    def known(self) -> Path:
        """Return the file of the secrets that this worker saw."""
        folder = self.run / "known"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{self.worker}.json"


def java_options() -> tuple[str, ...]:
    """Return the options of a JVM that writes nothing of its own outside of this process's temporary folder."""
    return (f"-Djava.io.tmpdir={tempfile.gettempdir()}", "-XX:-UsePerfData")


def enter_run_folder() -> WorkerFolder:
    """Enter the folder of the run that this process belongs to; without one, make one that ends with this process."""
    if VARIABLE not in os.environ:
        remove_what_was_left()
        run, _ = make_run_folder()
        os.environ[VARIABLE] = str(run)
        atexit.register(remove, run)
    folder = WorkerFolder(Path(os.environ[VARIABLE]), os.environ.get("PYTEST_XDIST_WORKER", "main"))
    folder.enter()
    return folder


def fresh_inner(run: Path, name: str) -> Path:
    """Return an empty folder for a run that this run starts: it lies in this one's, and is deleted with it."""
    inner = run / name
    remove(inner)
    inner.mkdir(mode=0o700)
    return inner


def memory_of(run: Path) -> Path:
    """Return the run's folder in memory, whether or not it exists; an inner run's lies in the outer one's, too."""
    outer = run.parent.name
    return _MEMORY / outer / run.name if outer.startswith(_PREFIX) else _MEMORY / run.name


def remove(run: Path) -> None:
    """Delete the folder and the one in memory, with what processes that are just ending still write into it.

    Raises OSError: when it can't be deleted.
    """
    for folder in (*[memory_of(run)] * _ATTEMPTS, *[run] * _ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
    if run.exists():
        shutil.rmtree(run)
