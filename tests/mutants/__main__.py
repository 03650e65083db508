"""Plants each mutant in a copy of this checkout, and runs the tests that must fail under it.

python -m tests.mutants                 all of them
python -m tests.mutants driver marker   those whose name or file contains all of these words
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.table import Table

from tests.mutants.planting import CHECKOUT, BrokenMutant, Mutant, all_mutants, planted
from tests.run_folder import VARIABLE, enter_run_folder, fresh_inner

# The width without a terminal.
_WIDTH = 190
# Seconds: for one test, which a mutant may keep from ending, and for all tests of a mutant.
_ONE_TEST, _ALL_TESTS = 120, 1800
# For the tests of all mutants.
_WITHOUT_MUTANTS = 3600
_FAILED = 1
_TIMED_OUT = "from pytest-timeout"
# Where one of these is set, pytest shows all of what differs: for megabytes that takes minutes, and nobody reads it.
_SHOWN_IN_FULL = ("CI", "BUILD_NUMBER")


@dataclass(frozen=True)
class Result:
    """The first test that failed under a mutant, empty if it survived, and the seconds that this took."""

    mutant: Mutant
    failed: str
    seconds: float


def main() -> int:
    asked = _asked()
    mutants = [mutant for mutant in all_mutants() if _is_meant(mutant, asked.words)]
    if not mutants:
        raise SystemExit(f"no mutant has all of these words: {' '.join(asked.words)}")
    run = enter_run_folder().run
    copies = [_copy(CHECKOUT, run / f"m{number}") for number in range(asked.jobs)]
    _require_green(copies[0], mutants)
    results = _tried(mutants, copies)
    Console(markup=False, width=None if Console().is_terminal else _WIDTH).print(_table(results))
    return int(any(_survived(result) for result in results))


def _asked() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.mutants", description="Planted defects, and what catches them.")
    parser.add_argument("words", nargs="*", help="only mutants whose name or file contains all of these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many are tried side by side")
    return parser.parse_args()


def _is_meant(mutant: Mutant, words: Sequence[str]) -> bool:
    return all(word in f"{mutant.name} {mutant.file}" for word in words)


def _copy(checkout: Path, to: Path) -> Path:
    """Copy the files that git tracks, or would after `git add`, as they are now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (checkout / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, to / name)
    return to


def _require_green(copy: Path, mutants: Sequence[Mutant]) -> None:
    """Raises BrokenMutant: when a test fails by itself, for then it catches nothing."""
    tests = sorted({test for mutant in mutants for test in mutant.caught_by})
    ran = _pytest(copy, tests, _WITHOUT_MUTANTS)
    if ran.returncode:
        raise BrokenMutant(f"without any mutant:\n{ran.stdout}{ran.stderr}")


def _tried(mutants: Sequence[Mutant], copies: Sequence[Path]) -> list[Result]:
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def try_one(mutant: Mutant) -> Result:
        copy = free.get()
        try:
            return _try(mutant, copy)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as threads:
        return list(threads.map(try_one, mutants))


def _try(mutant: Mutant, copy: Path) -> Result:
    """Plant it and run its tests. Raises BrokenMutant: when they can't be run at all."""
    began = time.monotonic()
    if mutant.equivalent:
        mutant.planted_in((copy / mutant.file).read_text())
        return Result(mutant, "", 0.0)
    with planted(mutant, copy):
        ran = _pytest(copy, mutant.caught_by, _ALL_TESTS)
    # The alarm can go off in an event loop's own code, from where pytest can't report it as a test's failure.
    never_ended = _TIMED_OUT in ran.stdout
    if ran.returncode not in {0, _FAILED} and not never_ended:
        raise BrokenMutant(f"{mutant.name!r}: its tests can't be run:\n{ran.stdout}{ran.stderr}")
    failed = _first_failed(ran.stdout) if ran.returncode else ""
    result = Result(mutant, failed, time.monotonic() - began)
    print(f"{'SURVIVED' if _survived(result) else 'caught'}: {mutant.name}", file=sys.stderr, flush=True)
    return result


def _pytest(copy: Path, tests: Sequence[str], together: float) -> subprocess.CompletedProcess[str]:
    """Run these tests, for `together` seconds at most."""
    command = [sys.executable, "-m", "pytest", *tests, "-x", "-q", "-p", "no:cacheprovider", f"--timeout={_ONE_TEST}"]
    # Each has a run folder of its own: those side by side would delete each other's files, and fail by that.
    run = fresh_inner(copy.parent, f"{copy.name}-run")
    command.append(f"--basetemp={run}/pytest")
    shortened = {name: value for name, value in os.environ.items() if name not in _SHOWN_IN_FULL}
    environment = shortened | {"PYTHONPATH": str(copy), VARIABLE: str(run)}
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=together, check=False
    )


def _first_failed(output: str) -> str:
    """Return the name of the first failed test, from pytest's short summary."""
    lines = [line.split(maxsplit=2) for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0][1] if lines else "a test whose name pytest does not tell"


def _survived(result: Result) -> bool:
    return not result.failed and not result.mutant.equivalent


def _table(results: Sequence[Result]) -> Table:
    survivors = sum(map(_survived, results))
    table = Table(title=f"{len(results)} mutants, {survivors} survived")
    for column in ("mutant", "file", "caught by"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right")
    for result in results:
        table.add_row(result.mutant.name, _short(result.mutant.file), _verdict(result), f"{result.seconds:.1f}")
    return table


def _short(file: str) -> str:
    return file.removeprefix("airflow_kstream/")


def _verdict(result: Result) -> str:
    if result.mutant.equivalent:
        return f"equivalent: {result.mutant.equivalent}"
    return result.failed.rpartition("::")[2] or "SURVIVED"


if __name__ == "__main__":
    sys.exit(main())
