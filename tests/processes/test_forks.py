"""A large log is scanned in forks of a process that has one thread, and what they find is one log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.simulated.logs import died, driver, failing, line

SCANS = """
import sys
from pathlib import Path
from airflow_kstream.supervise.triage import scan
from airflow_kstream.supervise.triage.scan import own_catalogue

assert scan.may_fork()
scans, in_forks = [], scan.in_forks
scan.in_forks = lambda works: scans.append(len(works)) or in_forks(works)
scanner = scan.scanner_of(own_catalogue())
one, four = (scan.scanned_file(Path(sys.argv[1]), "log", scanner, cores, 1000) for cores in (1, 4))
assert one == four, (one, four)
print(scans, sum(section.lines for section in four[0].sections))
"""
FORKS = """
import os, signal
from threading import Event, Thread
from airflow_kstream.clients.local.log_files import in_forks, may_fork
from airflow_kstream.model.errors import InvalidInput, Unavailable

def refuse():
    raise InvalidInput("it is not text")

print(may_fork())
assert in_forks([lambda number=number: (number, os.getpid()) for number in range(3)])[1][0] == 1
for work, kind in ((refuse, InvalidInput), (lambda: os.kill(os.getpid(), signal.SIGKILL), Unavailable)):
    try:
        in_forks([work, os.getpid])
    except kind as error:
        print(error)
ended = Event()
thread = Thread(target=ended.wait)
thread.start()
print(may_fork())
ended.set()
"""


def told(script: str, *words: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_a_log_that_was_scanned_in_four_forks_is_the_one_that_one_process_sees(tmp_path: Path) -> None:
    """Its last trouble is cut off from its record's beginning nowhere, and lines keep their numbers."""
    between = "".join(line(f"09:{at // 60:02}:{at % 60:02}", "a line" * 20) for at in range(1000))
    full = failing("09:59:59", "failed", "java.io.IOException: No space left on device")
    log = tmp_path / "stderr"
    log.write_text(driver(full * 20, between, full * 3, died("10:00:01")))
    assert told(SCANS, str(log)) == [f"[4] {log.read_text().count(chr(10))}"]


def test_what_a_fork_raises_is_raised_and_a_killed_one_is_named() -> None:
    alone, refused, killed, with_a_thread = told(FORKS)
    assert "it is not text" in refused
    assert "has this host enough memory?" in killed
    assert (alone, with_a_thread) == ("True", "False")
