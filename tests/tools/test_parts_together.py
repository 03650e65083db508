"""Parts of a tier that run at the same time, each under its guard."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import psutil
import pytest

from tests.__main__ import run_together
from tests.tiers import Part

# Each ends only once the other has begun. It tells its niceness, and that of its session where the kernel has one.
_MEETS = """
touch "$1"; until [ -e "$2" ]; do sleep 0.02; done; echo "$1 met $2"
nice; [ ! -e /proc/self/autogroup ] || sed 's/.* nice //' /proc/self/autogroup; exit "$3"
"""
_NICENESSES = 1 + Path("/proc/self/autogroup").exists()


@pytest.fixture
def use(tmp_path: Path) -> Iterator[int]:
    """A descriptor that all processes of a run inherit."""
    number = os.open(tmp_path / "in-use", os.O_RDWR | os.O_CREAT)
    yield number
    os.close(number)


def test_parts_that_run_together_keep_their_output_and_their_ends_apart(
    tmp_path: Path, use: int, capfd: pytest.CaptureFixture[str]
) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    waiting = Part("waiting", "waits", ("sh", "-c", _MEETS, "sh", here, there, "0"), waits=True)
    computing = Part("computing", "computes", ("sh", "-c", _MEETS, "sh", there, here, "3"), computes=True)
    results = run_together([waiting, computing], tmp_path, use)
    assert [(result.part.name, result.code) for result in results] == [("waiting", 0), ("computing", 3)]
    printed = capfd.readouterr()
    first, second = [f"{here} met {there}", *["0"] * _NICENESSES], [f"{there} met {here}", *["19"] * _NICENESSES]
    assert printed.out.splitlines() == first + second
    assert printed.err.splitlines()[-1] == "kstream: computing printed:"


@pytest.mark.timeout(300)
def test_an_interrupt_ends_all_parts_that_run(tmp_path: Path, use: int) -> None:
    begun = [tmp_path / name for name in ("waiting", "computing")]
    sleeps = 'touch "$1"; cd "$(dirname "$1")" && exec sleep 600'
    parts = [Part(file.name, "sleeps", ("sh", "-c", sleeps, "sh", str(file))) for file in begun]

    def interrupt() -> None:
        while not all(file.exists() for file in begun):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=interrupt).start()
    assert {result.code for result in run_together(parts, tmp_path, use)} == {130}
    assert not [child for child in psutil.Process().children(recursive=True) if folder_of(child) == str(tmp_path)]


def folder_of(process: psutil.Process) -> str | None:
    """Return the folder that the process works in; None if it has ended, as another test's may at any time."""
    with suppress(psutil.NoSuchProcess, FileNotFoundError):
        return process.cwd()
    return None
