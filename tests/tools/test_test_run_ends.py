"""A test run that ends in any way leaves nothing behind: no process, no folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.live.streams import await_that
from tests.run_folder import VARIABLE

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_test_run_that_is_ended_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """It is ended while a cluster is starting."""
    with started(tmp_path, "tests/tools/test_minicluster.py", "-k", "every_daemon") as run:
        await_that(lambda: bool(java_below(tmp_path)), "a cluster is starting")
        run.send_signal(number)
        run.wait()
        await_that(lambda: not processes_below(tmp_path) and not [*tmp_path.iterdir()], "nothing is left")


@pytest.mark.parametrize("number", SIGNALS)
def test_mutants_that_are_ended_leave_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """They are ended while tests run in a copy of the checkout."""
    with started(tmp_path, "--mutants") as run:
        await_that(lambda: bool([*tmp_path.glob("*/m0-run/main")]), "tests run in a copy")
        run.send_signal(number)
        run.wait()
        await_that(lambda: not processes_below(tmp_path) and not [*tmp_path.iterdir()], "nothing is left")


@contextmanager
def started(temporary: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a test run as a shell does: it belongs to no other run, and to no worker of one. It ends with this."""
    others = {name: value for name, value in os.environ.items() if not name.startswith((VARIABLE, "PYTEST_"))}
    command = [sys.executable, "-m", "tests", *arguments]
    with subprocess.Popen(command, env=others | {"TMPDIR": str(temporary)}, start_new_session=True) as run:
        try:
            yield run
        finally:
            run.kill()


def java_below(folder: Path) -> list[str]:
    return [line for line in processes_below(folder) if "java" in line.partition(" ")[0]]


def processes_below(folder: Path) -> list[str]:
    """Return command lines that contain this folder."""
    lines = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if str(folder) in line]
