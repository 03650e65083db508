"""`./kstream test`: runs a tier of the tests, or pytest with arguments of your own, and leaves nothing behind.

./kstream test                  the tier that CI runs
./kstream test --slow           the rest, and this tier's faults again
./kstream test --faults         a part of it; or --mutants, --crashes, --lives, --stalls, --predictions,
                                --alerts, --simulations, --prometheus, --compatibility
./kstream test ARGUMENT ...     pytest alone, with these arguments
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from rich.console import Console
from rich.table import Table

from airflow_kstream.demo.reaper import adopt_orphans, kill_descendants
from tests.left_in_tmp import note_what_is_there
from tests.run_folder import environment_of, make_run_folder, remove, remove_what_was_left
from tests.tiers import SLOW, SMALL, Part, rounds, waiting_together

_INTERRUPTED = 130
# The width without a terminal.
_WIDTH = 160
# What runs beside a part that waits gets what that leaves of the cores. Where the kernel shares them among sessions,
# `nice` counts within a session alone, and the session has its own (sched(7), "The autogroup feature").
_LEFT_OVER = ("sh", "-c", '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"', "sh")


@dataclass(frozen=True)
class Result:
    """The end of a part; `seconds` is its wall time."""

    part: Part
    code: int
    seconds: float


@dataclass(frozen=True)
class Running:
    """A part that runs under its guard, which ends when `hold_fd` is closed."""

    part: Part
    guard: subprocess.Popen[bytes]
    hold_fd: int
    output: IO[bytes] | None
    began: float

    def result(self) -> Result:
        code = self.guard.wait()
        return Result(self.part, code, time.monotonic() - self.began)

    def show(self) -> None:
        """Show what it printed, once it has ended."""
        self.guard.wait()
        if self.output:
            tell(f"{self.part.name} printed:")
            self.output.seek(0)
            shutil.copyfileobj(self.output, sys.stdout.buffer)
            sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    parts = chosen(arguments)
    for part in left_out(parts):
        tell(words_about(part))
    remove_what_was_left()
    run, use = make_run_folder()
    try:
        note_what_is_there(run)
        results = run_parts(parts, run, use)
    finally:
        kill_descendants()
        remove(run)
    if len(parts) > 1:
        Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH).print(table(parts, results))
    return next((result.code for result in results if result.code), 0)


def chosen(arguments: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts that these arguments select; other arguments are pytest's."""
    parser = argparse.ArgumentParser("./kstream test", add_help=False, allow_abbrev=False)
    for word in ("slow", *SLOW):
        parser.add_argument(f"--{word}", action="store_true")
    words, rest = parser.parse_known_args(arguments)
    slow = tuple(part for word, part in SLOW.items() if words.slow or getattr(words, word))
    if rest and slow:
        parser.error(f"{' '.join(rest)} would change what --slow and its parts run; give pytest's arguments alone")
    if rest:
        return (Part("pytest", "what was asked for", (sys.executable, "-m", "pytest", *rest)),)
    return waiting_together(slow) or SMALL


def left_out(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts that a whole tier leaves out, or has some of; none for what was asked for by name."""
    return tuple(SLOW.values()) if parts is SMALL else ()


def words_about(left: Part) -> str:
    how = "only partly" if left.repeats else "not"
    return f"{how} in this tier: {left.name} ({left.covers}); ./kstream test --{left.name} runs it"


def tell(line: str) -> None:
    print(f"kstream: {line}", file=sys.stderr, flush=True)


def run_parts(parts: Sequence[Part], run: Path, use: int) -> list[Result]:
    """Run the parts a round after the other; skip the rest after an essential part that failed, or an interrupt."""
    adopt_orphans()
    results: list[Result] = []
    for together in rounds(parts):
        results += run_together(together, run, use)
        if any(result.code == _INTERRUPTED or (result.code and result.part.essential) for result in results):
            break
    return results


def run_together(parts: Sequence[Part], run: Path, use: int) -> list[Result]:
    """Run these parts at the same time; what others than the first print is shown when all have ended.

    An interrupt ends all of them.
    """
    running: list[Running] = []
    with ExitStack() as when_done, ThreadPoolExecutor(len(parts)) as threads:
        try:
            for part in parts:
                output = when_done.enter_context(TemporaryFile()) if running else None
                running.append(start(part, run, use, output))
            return list(threads.map(Running.result, running))
        except KeyboardInterrupt:
            return [Result(each.part, _INTERRUPTED, time.monotonic() - each.began) for each in running]
        finally:
            for each in running:
                # Now its guard knows that it has to end, if it has not ended by itself.
                os.close(each.hold_fd)
            for each in running:
                each.show()


def start(part: Part, run: Path, use: int, output: IO[bytes] | None) -> Running:
    """Start one part with its own folders, under a guard that ends all its processes; it prints to `output`.

    Its processes inherit `use`, so that the folder is in use for as long as one of them lives.
    """
    tell(f"{part.name}: {part.covers}")
    read_fd, hold_fd = os.pipe()
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} --basetemp={run}/pytest/{part.name}"
    environment = environment_of(run) | {"PYTEST_ADDOPTS": options}
    (run / "pytest").mkdir(exist_ok=True)
    command = (*_LEFT_OVER, *part.command) if part.computes else part.command
    guarded = [sys.executable, "-m", "tests.guarded", str(read_fd), str(run), *command]
    guard = subprocess.Popen(guarded, env=environment, pass_fds=(read_fd, use), stdout=output, stderr=output)
    os.close(read_fd)
    return Running(part, guard, hold_fd, output, time.monotonic())


def table(parts: Sequence[Part], results: Sequence[Result]) -> Table:
    shown = Table("part", "covers", "time", "result")
    done = {result.part.name: result for result in results}
    for part in parts:
        result = done.get(part.name)
        ended = "not run" if result is None else ("passed" if result.code == 0 else f"failed ({result.code})")
        shown.add_row(part.name, part.covers, f"{result.seconds:.0f} s" if result else "", ended)
    for part in left_out(parts):
        shown.add_row(part.name, part.covers, "", f"{'partly ' if part.repeats else ''}left to --{part.name}")
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
