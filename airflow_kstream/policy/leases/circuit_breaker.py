"""When to ask for no more recoveries: for the moment, or in this run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease_recovery import Outcome
from airflow_kstream.policy.leases.limits import SafetyLimits, Timeouts

_ASK_AGAIN = timedelta(seconds=2)


@dataclass
class CircuitBreaker:
    """`stopped` says why, and is for good. It `holds` also for as long as the gate is not known."""

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

    def health_seen(self, now: timedelta, said: HdfsHealth | KstreamError) -> bool:
        """Whether another NameNode is active now than at the last answer."""
        if isinstance(said, KstreamError):
            self._unanswered(now, said)
            return False
        self._first, before = self._first or said, self._last or said
        self._last = said
        self._known, self._unknown_since = True, now
        self.next_health = now + self.timeouts.health
        self.stop(self._danger(said, self._first))
        return (before.active, before.active_since) != (said.active, said.active_since)

    def ended(self, outcome: Outcome) -> None:
        """Count what was tried to its end; a file's own troubles say nothing of the cluster."""
        self._closed += outcome is Outcome.CLOSED
        self._given_up += outcome is Outcome.GAVE_UP
        tried, allowed = self._closed + self._given_up, self.safety.failures
        if allowed is not None and tried >= self.safety.of_at_least and self._given_up > allowed * tried:
            self.stop(
                f"{self._given_up} of {tried} files were not closed in time; allowed are {allowed:.0%} (failures)"
            )

    def _unanswered(self, now: timedelta, error: KstreamError) -> None:
        self._known = False
        self.next_health = now + _ASK_AGAIN
        silent = now - self._unknown_since
        if not error.retryable or silent >= self.timeouts.without_health:
            self.stop(f"how the cluster is can't be told for {format_duration(silent)}: {error.message}")

    def _danger(self, health: HdfsHealth, first: HdfsHealth) -> str:
        lost = health.dead + health.stale - first.dead - first.stale
        dangers = (
            (health.safe_mode, "the NameNode is in safe mode"),
            (
                _above(health.dead, self.safety.dead),
                f"{health.dead} DataNodes are dead; allowed are {self.safety.dead}",
            ),
            (
                _above(health.stale, self.safety.stale),
                f"{health.stale} DataNodes are stale; allowed are {self.safety.stale}",
            ),
            (
                _above(lost, self.safety.newly_lost),
                f"{lost} DataNodes were lost since the start; allowed are {self.safety.newly_lost} (newly_lost)",
            ),
        )
        return next((words for holds, words in dangers if holds), "")


def _above(count: int, allowed: int | None) -> bool:
    return allowed is not None and count > allowed
