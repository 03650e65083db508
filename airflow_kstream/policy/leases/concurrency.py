"""Concurrency limits: few recoveries at first, more while they succeed, fewer after failures.

Each DataNode's limit begins at 32, quadruples after that many files were closed in time, up to `per_datanode`, and
halves after a failure: a file that is not closed within 15 s. The limit of all together does the same, up to `in_all`;
there, refused requests and slow answers are failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState

# A file that is not closed within this time is a failure of its DataNode.
SLOW_CLOSE = timedelta(seconds=15)
# A mean answer that takes longer is a failure of the NameNode.
_SLOW_ANSWER = timedelta(seconds=1)
_START = 32
# A DataNode begins recoveries only with its heartbeats, so each step takes one, 3 s by default.
_GROWTH = 4
# Also in an unlimited run, because of bugs in NameNode and DataNodes (HDFS-17150, HDFS-17358).
_ERASURE_CODED = 2


@dataclass(eq=False)
class ConcurrencyLimit:
    """The number of recoveries that may run at once on one DataNode, or on all; `most` of None means no limit."""

    name: str
    most: int | None
    in_flight: int = 0
    given_up_in_a_row: int = 0
    last_close: timedelta | None = None
    size: int | None = field(init=False)
    _successes: int = 0
    _halved: timedelta | None = None
    _failed: timedelta | None = None

    def __post_init__(self) -> None:
        self.size = None if self.most is None else min(self.most, _START)

    @property
    def room(self) -> float:
        return float("inf") if self.size is None else max(0, self.size - self.in_flight)

    def on_success(self, now: timedelta) -> None:
        """Count a file that was closed in time. The limit grows only if there was no failure for `SLOW_CLOSE`."""
        self._successes += 1
        full = self.size is not None and self._successes >= self.size
        if full and self.size is not None and self.most is not None and _is_over(self._failed, now):
            self.size = min(self.size * _GROWTH, self.most)
            self._successes = 0

    def on_failure(self, now: timedelta) -> None:
        """Halve the limit, once for all failures that come within `SLOW_CLOSE`."""
        self._successes = 0
        if self.size is not None and _is_over(self._halved, now):
            self.size = max(1, self.size // 2)
            self._halved = now
        self._failed = now


@dataclass(eq=False, slots=True)
class Slot:
    """The place of one file's recovery: on its DataNode, and in the limits that it takes up now (`taken`)."""

    host: ConcurrencyLimit
    limits: tuple[ConcurrencyLimit, ...]
    taken: tuple[ConcurrencyLimit, ...] = ()

    @property
    def has_room(self) -> bool:
        return all(limit.room >= 1 for limit in self.limits)

    def take(self) -> None:
        self.taken = self.limits
        for limit in self.taken:
            limit.in_flight += 1

    def leave(self, *limits: ConcurrencyLimit) -> None:
        for limit in limits:
            limit.in_flight -= 1
        self.taken = tuple(limit for limit in self.taken if limit not in limits)


class ConcurrencyLimits:
    """The limits of a run: one per DataNode, one for all `together`, and one for erasure-coded files."""

    def __init__(self, limits: RecoveryLimits) -> None:
        self._per_datanode = limits.per_datanode
        self._hosts: dict[str, ConcurrencyLimit] = {}
        self._coded = ConcurrencyLimit("", _ERASURE_CODED)
        self.together = ConcurrencyLimit("", limits.in_all)

    def slot(self, state: FileState) -> Slot:
        """Return a slot on the DataNode that the NameNode names first, which most likely does the work."""
        name = state.block.hosts[0] if state.block and state.block.hosts else ""
        host = self._hosts.setdefault(name, ConcurrencyLimit(name, self._per_datanode))
        return Slot(host, (self.together, host, *([self._coded] if state.erasure_coded else [])))

    def closed(self, now: timedelta, slot: Slot | None) -> None:
        if slot:
            slot.host.last_close = now
            slot.host.given_up_in_a_row = 0
            if self.together in slot.taken:
                for limit in slot.taken:
                    limit.on_success(now)

    def answered(self, now: timedelta, latency: timedelta) -> None:
        """Count a failure of the NameNode if its mean answer took too long."""
        if latency > _SLOW_ANSWER:
            self.together.on_failure(now)

    def is_slow(self, now: timedelta, slot: Slot | None) -> None:
        """Free the place in the overall limit, since the NameNode is done, and count a failure of the DataNode."""
        if slot:
            slot.leave(self.together)
            slot.host.on_failure(now)

    def give_back(self, slot: Slot | None) -> None:
        if slot:
            slot.leave(*slot.taken)


def _is_over(since: timedelta | None, now: timedelta) -> bool:
    return since is None or now - since >= SLOW_CLOSE
