"""A client that can't be started, takes too long, or is a script around the real one: with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark import submit
from airflow_kstream.model.errors import SubmissionFailed
from airflow_kstream.model.streams.submission import Submission, SubmitOutcome
from tests.temporary import temporary_files_in

LONG, SHORT = timedelta(minutes=1), timedelta(seconds=0.2)
# As a distribution's wrapper does: the real client is its child, and goes on without it.
WRAPPER = f"""#!/bin/sh
{sys.executable} -c '
import os, sys, time
print(os.getpid(), flush=True)
time.sleep(600)'
"""
# Prints its folder, and waits for its client.
SUPERVISOR = """
import sys
from datetime import timedelta
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark import submit
from airflow_kstream.model.streams.submission import Submission
with private_folder() as folder:
    print(folder, flush=True)
    submit(Submission(sys.argv[1], ()), {}, folder, timedelta(minutes=10))
"""


def client(folder: Path, text: str, mode: int = 0o755) -> str:
    path = folder / "spark-submit"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def submitted(binary: str, timeout: timedelta = LONG) -> SubmitOutcome:
    with private_folder() as private:
        return submit(Submission(binary, ()), {}, private, timeout)


def runs(pid: int) -> bool:
    """Tell whether the process does anything; a container without an init keeps zombies."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_its_exit_code_and_the_end_of_its_output_are_reported(tmp_path: Path) -> None:
    script = client(tmp_path, "#!/bin/sh\necho no queue of that name\nexit 3\n")
    assert submitted(script) == SubmitOutcome(3, "no queue of that name")


def test_a_client_whose_output_is_gone_has_run_nevertheless(tmp_path: Path) -> None:
    """Its application may run: an error would be taken for that of a client that never started."""
    outcome = submitted(client(tmp_path, "#!/bin/sh\nrm client.log\n"))
    assert outcome == SubmitOutcome(0, outcome.tail)
    assert "can't be read" in outcome.tail


def test_the_end_of_its_output_has_exceptions_and_no_stack_frames(tmp_path: Path) -> None:
    """Java prints the cause first, and more frames below it than are reported."""
    frames = "\n".join(f"\tat org.apache.hadoop.ipc.Client.call{number}(Client.java:{number})" for number in range(50))
    said = f"Exception in thread main: no ticket\n{frames}\nCaused by: no KDC\n{frames}\n\t... 12 more"
    script = client(tmp_path, f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit 1\n")
    assert submitted(script).tail.splitlines() == ["Exception in thread main: no ticket", "Caused by: no KDC"]


def test_a_long_output_begins_with_its_error_and_keeps_its_end(tmp_path: Path) -> None:
    """What ended the JVM comes before what was merely tried again, and neither drowns in what follows."""
    tries = [f"INFO RetryInvocationHandler: java.net.ConnectException: refused, try {number}" for number in range(40)]
    cause = 'Exception in thread "main" org.apache.hadoop.security.AccessControlException: queue streams'
    follows = [f"INFO ShutdownHookManager: step {number}" for number in range(40)]
    said = "\n".join([*tries, cause, *follows])
    told = submitted(client(tmp_path, f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit 1\n")).tail.splitlines()
    assert (told[0], told[-1], len(told)) == (cause, follows[-1], 31)


def test_a_secret_that_the_client_prints_is_masked(tmp_path: Path) -> None:
    """What it said is told to people, and kept."""
    said = "Error: spark.ssl.keyPassword=hunter2 is too short"
    outcome = submitted(client(tmp_path, f"#!/bin/sh\necho '{said}'\nexit 1\n"))
    assert outcome.tail.startswith("Error: spark.ssl.keyPassword=")
    assert "hunter2" not in outcome.tail


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("#!/bin/sh\n", 0o644, "Permission denied"),
        ("#!/no/such/shell\n", 0o755, "No such file or directory"),
        ("neither script nor program", 0o755, "Exec format error"),
    ],
)
def test_a_client_that_cannot_be_started_submitted_nothing_and_says_so(
    tmp_path: Path, text: str, mode: int, why: str
) -> None:
    script = client(tmp_path, text, mode)
    with pytest.raises(SubmissionFailed, match=f"start {script}: it can't be started on this host: {why}"):
        submitted(script)


def test_a_client_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """A JVM that outlives its script would submit later."""
    began = time.monotonic()
    with private_folder() as private:
        log = private / "client.log"
        outcome = SubmitOutcome(0, "")
        # Until its child has said its number: a machine may be busy.
        for timeout in (SHORT * 5**attempt for attempt in range(5)):
            outcome = submit(Submission(client(tmp_path, WRAPPER), ()), {}, private, timeout)
            if log.read_text():
                break
        child = int(log.read_text())
    assert outcome == SubmitOutcome(None, str(child))
    assert time.monotonic() - began < 600
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.05), reraise=True):
        with attempt:
            assert not runs(child)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A temporary folder that several processes share."""
    (tmp_path / "tmp").mkdir()
    with temporary_files_in(tmp_path / "tmp") as folder:
        yield folder


@pytest.mark.usefixtures("shared")
def test_the_folder_of_a_killed_supervisor_stays_while_its_client_works_in_it(tmp_path: Path) -> None:
    """Its ticket and its properties file are in there, and another command on this host sweeps leftovers."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = client(tmp_path, f"#!/bin/sh\necho works >{gate}\nread line <{gate}\n")
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, script], stdout=subprocess.PIPE, text=True)
    with supervisor:
        assert supervisor.stdout
        folder = Path(supervisor.stdout.readline().rstrip())
        assert gate.read_text() == "works\n"
        supervisor.kill()
    with private_folder():
        assert folder.exists()
    gate.write_text("end\n")
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.05), reraise=True):
        with attempt, private_folder():
            assert not folder.exists()
