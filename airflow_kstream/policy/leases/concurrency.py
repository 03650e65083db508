"""Concurrency limits: few recoveries at first, more while they succeed, fewer after failures.

Each DataNode's limit begins at 32, quadruples after that many files were closed in time, up to `per_datanode`, and
halves after a failure: a file that is not closed within 15 s. The limit of all together does the same, up to `in_all`;
there, refused requests and slow answers are failures, but no second refusal of the same file.

The circuit breaker suspends recovery requests for the moment, or stops them for the rest of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.model.leases.limits import Pauses, RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState

# More dead or stale DataNodes stop a run, or more lost ones of both kinds than at its start: recovering while DataNodes
# leave can take the standby NameNode down (HDFS-17861). Of thousands some are always away: there a share counts.
_AWAY, _NEWLY_LOST = 10, 1
_SHARE_AWAY, _SHARE_NEWLY_LOST = 0.02, 0.001
# The share of given-up files that stops a run, once this many files were closed or given up.
_FAILURES, _OF_AT_LEAST = 0.05, 20
# How long the cluster's health may stay unknown, and the pause before it is checked again.
_WITHOUT_HEALTH, _RETRY_AFTER = timedelta(minutes=2), timedelta(seconds=2)

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


def why_unfit(health: HdfsHealth) -> str:
    """Return why no recovery should begin on this cluster now, including by a probe; empty if it may."""
    limit = _limit(_AWAY, _SHARE_AWAY, health)
    dangers = (
        (health.safe_mode, "the NameNode is in safe mode"),
        (health.dead > limit, f"{health.dead} DataNodes are dead (limit {limit})"),
        (health.stale > limit, f"{health.stale} DataNodes are stale (limit {limit})"),
    )
    return next((words for holds, words in dangers if holds), "")


@dataclass
class CircuitBreaker:
    """The rules that suspend or stop a run. `stopped` is the reason, and is final.

    `holds` is also true while the cluster's health is unknown. Times are counted from the run's start.
    """

    pauses: Pauses
    stopped: str = ""
    next_health: timedelta = timedelta(0)
    _first: HdfsHealth | None = None
    _last: HdfsHealth | None = None
    _known: bool = False
    _unknown_since: timedelta = timedelta(0)
    _closed: int = 0
    _given_up: int = 0

    @property
    def holds(self) -> bool:
        return bool(self.stopped) or not self._known

    @property
    def version(self) -> str:
        return self._first.version if self._first else ""

    def health_due(self, now: timedelta) -> bool:
        return not self.stopped and now >= self.next_health

    def stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason

    def health_seen(self, now: timedelta, answer: HdfsHealth | KstreamError) -> bool:
        """Take the answer to a health check; return True if another NameNode is active than at the last answer."""
        if isinstance(answer, KstreamError):
            self._unanswered(now, answer)
            return False
        self._first, before = self._first or answer, self._last or answer
        self._last = answer
        self._known, self._unknown_since = True, now
        self.next_health = now + self.pauses.health
        self.stop(_danger(answer, self._first))
        return (before.active, before.active_since) != (answer.active, answer.active_since)

    def ended(self, outcome: Outcome) -> None:
        """Count a closed or given-up file. Other outcomes concern that file alone and say nothing about the cluster."""
        self._closed += outcome is Outcome.CLOSED
        self._given_up += outcome is Outcome.GAVE_UP
        tried = self._closed + self._given_up
        if tried >= _OF_AT_LEAST and self._given_up > _FAILURES * tried:
            self.stop(f"{self._given_up} of {tried} files were not closed in time (limit {_FAILURES:.0%})")

    def _unanswered(self, now: timedelta, error: KstreamError) -> None:
        self._known = False
        self.next_health = now + _RETRY_AFTER
        silent = now - self._unknown_since
        if not error.retryable or silent >= _WITHOUT_HEALTH:
            self.stop(f"cluster health has been unknown for {format_duration(silent)}: {error.message}")


def _danger(health: HdfsHealth, first: HdfsHealth) -> str:
    lost = health.dead + health.stale - first.dead - first.stale
    limit = _limit(_NEWLY_LOST, _SHARE_NEWLY_LOST, first)
    newly = f"{lost} DataNodes were lost since the start (limit {limit})" if lost > limit else ""
    return why_unfit(health) or newly


def _limit(least: int, share: float, health: HdfsHealth) -> int:
    """Return how many DataNodes may be away: a share of all, but at least so many."""
    return max(least, int(share * (health.live + health.dead)))
