"""The tools of a recovery: the clients that it reads and requests by, its journal, its clock, and its judge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from airflow_kstream.clients.hdfs.lease_recovery_native import LeaseRecoverer
from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.leases.lease_recovery import Target
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.journal import Journal


class FileStates(Protocol):
    """A source of many files' states at once; an error is either one file's answer, or raised for all of them."""

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]: ...

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]: ...


class TargetSource(Protocol):
    """A judge of further files while others are recovered.

    `due` is the time until some can be judged; None if none is left. `judged` judges at most so many of them that are
    due, and returns those that may be recovered, each with the state that decided; None if it has to be read again
    before its request, because something happened in between.
    """

    def due(self) -> timedelta | None: ...

    def judged(self, most: int) -> Sequence[tuple[Target, FileState | None]]: ...


class Clock:
    """The clock of this host: time of day, elapsed time, and waiting."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def passed(self) -> timedelta:
        return timedelta(seconds=time.monotonic())

    def wait(self, stop: threading.Event, duration: timedelta) -> None:
        stop.wait(duration.total_seconds())


@dataclass(frozen=True)
class Tools:
    """The tools of a recovery. `valid_length` is called for each file that was closed, so it should be cheap.

    `reads_at_once` is the most files in one call of `states`; set it low if each of them takes long.
    """

    states: FileStates
    recoverer: LeaseRecoverer
    health: Callable[[], HdfsHealth]
    journal: Journal
    valid_length: Callable[[str], int | None] = lambda path: None
    reads_at_once: int = 1000
    clock: Clock = field(default_factory=Clock)
