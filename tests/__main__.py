"""`./kstream test`: runs a tier of the tests, or pytest with arguments of your own, and leaves nothing behind.

./kstream test                  the tier that CI runs: 12 minutes
./kstream test --real           whole commands, lives and faults on real clusters, in a running Airflow: 30 minutes
./kstream test --slow           the rest: hours
./kstream test --faults         a part of it; or --clusters, --tools, --mutants, --crashes, --lives, --stalls,
                                --predictions, --alerts, --simulations, --prometheus, --compatibility
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
from tests.tiers import REAL, SLOW, SMALL, Part, rounds, waiting_together
from tests.times import PART, Times, read_times

_INTERRUPTED = 130
# The width without a terminal.
_WIDTH = 160
_SLOWEST = 10
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
    for word, covers in left_out(parts).items():
        tell(f"not in this tier: {covers}; ./kstream test --{word} runs it")
    remove_what_was_left()
    run, use = make_run_folder()
    began = time.monotonic()
    try:
        note_what_is_there(run)
        results = run_parts(parts, run, use)
        times = read_times(run)
    finally:
        kill_descendants()
        remove(run)
    if len(parts) > 1:
        console = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH)
        console.print(table(parts, results, times, time.monotonic() - began))
        console.print(slowest(times))
    return next((result.code for result in results if result.code), 0)


def chosen(arguments: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts that these arguments select; other arguments are pytest's."""
    parser = argparse.ArgumentParser("./kstream test", add_help=False, allow_abbrev=False)
    for word in ("real", "slow", *SLOW):
        parser.add_argument(f"--{word}", action="store_true")
    words, rest = parser.parse_known_args(arguments)
    slow = tuple(part for word, part in SLOW.items() if words.slow or getattr(words, word))
    if rest and (slow or words.real):
        parser.error(f"{' '.join(rest)} would change what a tier or a part of it runs; give pytest's arguments alone")
    if rest:
        return (Part("pytest", "what was asked for", (sys.executable, "-m", "pytest", *rest)),)
    return (REAL if words.real else ()) + waiting_together(slow) or SMALL


def left_out(parts: Sequence[Part]) -> dict[str, str]:
    """Return what the small tier leaves out, by the word that runs it; nothing for what was chosen by its word."""
    return {part.name: part.covers for part in (REAL[0], *SLOW.values())} if parts is SMALL else {}


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
    environment = environment_of(run) | {"PYTEST_ADDOPTS": options, PART: part.name}
    (run / "pytest").mkdir(exist_ok=True)
    command = (*_LEFT_OVER, *part.command) if part.computes else part.command
    guarded = [sys.executable, "-m", "tests.guarded", str(read_fd), str(run), *command]
    guard = subprocess.Popen(guarded, env=environment, pass_fds=(read_fd, use), stdout=output, stderr=output)
    os.close(read_fd)
    return Running(part, guard, hold_fd, output, time.monotonic())


def table(parts: Sequence[Part], results: Sequence[Result], times: Times, whole: float) -> Table:
    """Show the time of each part, and of its stages, beside its budget; what ran at the same time overlaps."""
    shown = Table("part", "covers", "time", "budget", "result", caption=f"{whole / 60:.1f} minutes in all")
    done = {result.part.name: result for result in results}
    for part in parts:
        result = done.get(part.name)
        ended = "not run" if result is None else ("passed" if result.code == 0 else f"failed ({result.code})")
        shown.add_row(part.name, part.covers, _seconds(result.seconds if result else 0), _seconds(part.budget), ended)
        for stage in part.stages:
            shown.add_row("", f"· {stage.covers}", _seconds(times.below(stage.path)), _seconds(stage.budget), "")
    for word, covers in left_out(parts).items():
        shown.add_row(word, covers, "", "", f"left to --{word}")
    return shown


def slowest(times: Times) -> Table:
    shown = Table("the slowest tests", "time")
    for name, seconds in times.slowest(_SLOWEST):
        shown.add_row(name, _seconds(seconds))
    return shown


def _seconds(number: float) -> str:
    return f"{number:.0f} s" if number else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
