"""Waiting until a daemon serves; if it does not, the line of its log that says why."""

from __future__ import annotations

import itertools
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from airflow_kstream.minicluster.answers import not_serving
from airflow_kstream.minicluster.daemons import Daemon
from airflow_kstream.minicluster.processes import Identity
from airflow_kstream.minicluster.site import Site
from airflow_kstream.model.errors import MiniclusterError

_DEADLINE_SECONDS = 300
_POLL_SECONDS = 0.1
_TAIL_BYTES = 200_000
_THROWN = re.compile(r"^(?:Exception in thread \S+ )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Failure)\b.*")
_TRACE = re.compile(r"\s+(?:at |\.\.\. )|Caused by: ")
_LOUD = re.compile(r" (?:ERROR|FATAL) |[Cc]annot|[Ff]ailed|error")


@dataclass(frozen=True)
class Started:
    """A daemon's process and how much of its log was written by earlier ones."""

    daemon: Daemon
    identity: Identity
    logs: tuple[Path, ...]
    skip: tuple[int, ...]

    def reason(self) -> str:
        """Return the line of its logs that says why it does not serve, after the name of the file."""
        told = [(log, _telling(_lines(log, skip))) for log, skip in zip(self.logs, self.skip, strict=True)]
        return next((f"{log.name}: {line}" for log, line in told if line), f"{self.logs[0].name} is empty")


def size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _lines(log: Path, skip: int) -> list[str]:
    if not log.exists():
        return []
    with log.open("rb") as content:
        content.seek(max(skip, size(log) - _TAIL_BYTES))
        return content.read().decode(errors="replace").splitlines()


def _telling(lines: list[str]) -> str:
    """Return the last exception with its causes, else the last line that looks like an error, else the last line."""
    thrown = [number for number, line in enumerate(lines) if _THROWN.match(line)]
    if thrown:
        trace = itertools.takewhile(_TRACE.match, lines[thrown[-1] + 1 :])
        return "; ".join([lines[thrown[-1]], *(line.strip() for line in trace if line.startswith("Caused by"))])
    loud = [line for line in lines if _LOUD.search(line)]
    return (loud or lines or [""])[-1].strip()


def await_serving(site: Site, started: Started, abandoned: threading.Event) -> str:
    """Wait for the daemon's first good answer. Raises MiniclusterError: when it died or took too long."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    answer = "nothing"
    while time.monotonic() < deadline and not abandoned.wait(_POLL_SECONDS):
        try:
            return started.daemon.ask(site)
        except not_serving() as error:
            answer = str(error)
        if started.identity.state() == "dead":
            raise _failure(started, "ended at its start")
    if abandoned.is_set():
        return "given up"
    raise _failure(started, f"did not serve within {_DEADLINE_SECONDS} s, its last answer was: {answer}")


def _failure(started: Started, what: str) -> MiniclusterError:
    return MiniclusterError(f"{started.daemon.name} {what}. {started.reason()}")
