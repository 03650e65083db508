"""The circuit breaker: it suspends recovery requests for the moment, or stops them for the rest of the run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.model.leases.limits import Pauses

# More DataNodes stop a run, or more lost ones of both kinds than at its start: recovering while DataNodes leave can
# take the standby NameNode down (HDFS-17861).
_DEAD, _STALE, _NEWLY_LOST = 10, 10, 1
# The share of given-up files that stops a run, once this many files were closed or given up.
_FAILURES, _OF_AT_LEAST = 0.05, 20
# How long the cluster's health may stay unknown, and the pause before it is checked again.
_WITHOUT_HEALTH, _RETRY_AFTER = timedelta(minutes=2), timedelta(seconds=2)


def why_unfit(health: HdfsHealth) -> str:
    """Return why no recovery should begin on this cluster now, including by a probe; empty if it may."""
    dangers = (
        (health.safe_mode, "the NameNode is in safe mode"),
        (health.dead > _DEAD, f"{health.dead} DataNodes are dead (limit {_DEAD})"),
        (health.stale > _STALE, f"{health.stale} DataNodes are stale (limit {_STALE})"),
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
    newly = f"{lost} DataNodes were lost since the start (limit {_NEWLY_LOST})" if lost > _NEWLY_LOST else ""
    return why_unfit(health) or newly
