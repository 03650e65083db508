"""The circuit breaker: it suspends recovery requests for the moment, or stops them for the rest of the run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease_recovery import Outcome
from airflow_kstream.policy.leases.limits import SafetyLimits, Timeouts

_RETRY_AFTER = timedelta(seconds=2)


@dataclass
class CircuitBreaker:
    """The rules that suspend or stop a run. `stopped` is the reason, and is final.

    `holds` is also true while the cluster's health is unknown. Times are counted from the run's start.
    """

    safety: SafetyLimits
    timeouts: Timeouts
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
        self.next_health = now + self.timeouts.health
        self.stop(self._danger(answer, self._first))
        return (before.active, before.active_since) != (answer.active, answer.active_since)

    def ended(self, outcome: Outcome) -> None:
        """Count a closed or given-up file. Other outcomes concern that file alone and say nothing about the cluster."""
        self._closed += outcome is Outcome.CLOSED
        self._given_up += outcome is Outcome.GAVE_UP
        tried, allowed = self._closed + self._given_up, self.safety.failures
        if allowed is not None and tried >= self.safety.of_at_least and self._given_up > allowed * tried:
            self.stop(f"{self._given_up} of {tried} files were not closed in time (limit {allowed:.0%}, failures)")

    def _unanswered(self, now: timedelta, error: KstreamError) -> None:
        self._known = False
        self.next_health = now + _RETRY_AFTER
        silent = now - self._unknown_since
        if not error.retryable or silent >= self.timeouts.without_health:
            self.stop(f"cluster health has been unknown for {format_duration(silent)}: {error.message}")

    def _danger(self, health: HdfsHealth, first: HdfsHealth) -> str:
        lost = health.dead + health.stale - first.dead - first.stale
        dangers = (
            (health.safe_mode, "the NameNode is in safe mode"),
            (
                _above(health.dead, self.safety.dead),
                f"{health.dead} DataNodes are dead (limit {self.safety.dead})",
            ),
            (
                _above(health.stale, self.safety.stale),
                f"{health.stale} DataNodes are stale (limit {self.safety.stale})",
            ),
            (
                _above(lost, self.safety.newly_lost),
                f"{lost} DataNodes were lost since the start (limit {self.safety.newly_lost}, newly_lost)",
            ),
        )
        return next((words for holds, words in dangers if holds), "")


def _above(count: int, allowed: int | None) -> bool:
    return allowed is not None and count > allowed
