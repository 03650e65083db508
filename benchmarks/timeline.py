"""`kstream` as it is typed, with a stopwatch for the steps of a recovery: python -m benchmarks.timeline FILE WORDS...

Each moment counts for the innermost step that it belongs to, so that the steps add up to the whole. The steps of the
main thread are written to FILE, in seconds by name; the process's start includes Python's.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

_START, _END = "start", "report and end"
# A function, and the step that its time counts for. The executor's commands are steps of their own.
_STEPS = (
    ("supervise.leases.survey.Surveyor.scan", "first look"),
    ("supervise.leases.recover._take_turn", "other runs"),
    ("supervise.leases.survey.Surveyor.look_again", "second looks"),
    ("supervise.leases.holders.HolderProbe.__call__", "probes"),
    ("supervise.leases.journal.Journal._write", "journal"),
    ("supervise.leases.survey.ScanHistory.load", "history"),
    ("supervise.leases.survey.ScanHistory.save", "history"),
)
_COMMANDS = {
    "ReadStates": "reads before requests",
    "RequestRecovery": "requests",
    "Poll": "polls",
    "Review": "last reads",
    "WaitUntil": "waiting for DataNodes",
}
_BEFORE_REQUESTS = "waiting for the second look"


class Stopwatch:
    """The time of each step, in seconds."""

    def __init__(self, since: float) -> None:
        self.steps: dict[str, float] = defaultdict(float)
        self._step, self._since = _START, since

    def enter(self, step: str) -> str:
        """Count from now on for this step, and return the one before."""
        now = time.time()
        self.steps[self._step] += now - self._since
        before, self._step, self._since = self._step, step, now
        return before


def main() -> None:
    """Run the command. Its exit code is this process's."""
    watch = Stopwatch(_started())
    file, *words = sys.argv[1:]
    for name, step in _STEPS:
        _measure(name, watch, functools.partial(_always, step))
    requested: list[str] = []
    _measure("supervise.leases.executor.RecoveryExecutor._carry_out", watch, functools.partial(_command, requested))
    from airflow_kstream.cli import main as kstream

    sys.argv = ["kstream", *words]
    try:
        kstream()
    finally:
        watch.enter(_END)
        Path(file).write_text(json.dumps(watch.steps))


def _always(step: str, arguments: tuple[Any, ...]) -> str:
    return step


def _command(requested: list[str], arguments: tuple[Any, ...]) -> str:
    name = type(arguments[1]).__name__
    requested += [name] if name == "RequestRecovery" else []
    return _BEFORE_REQUESTS if name == "WaitUntil" and not requested else _COMMANDS.get(name, "judging")


def _measure(name: str, watch: Stopwatch, step_of: Callable[[tuple[Any, ...]], str]) -> None:
    """Replace the function by one that counts its time for a step."""
    owner, attribute = _found(f"airflow_kstream.{name}")
    function = getattr(owner, attribute)

    @functools.wraps(function)
    def measured(*arguments: Any, **named: Any) -> Any:
        before = watch.enter(step_of(arguments))
        try:
            return function(*arguments, **named)
        finally:
            watch.enter(_END if before == _START else before)

    setattr(owner, attribute, measured)


def _found(name: str) -> tuple[Any, str]:
    """Return the module or class, and the attribute's name."""
    from importlib import import_module

    where, _, attribute = name.rpartition(".")
    try:
        return import_module(where), attribute
    except ModuleNotFoundError:
        module, _, owner = where.rpartition(".")
        return getattr(import_module(module), owner), attribute


def _started() -> float:
    """Return when this process was started, as `time.time` counts."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    running = float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - running


if __name__ == "__main__":
    main()
