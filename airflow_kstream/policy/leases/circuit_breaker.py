"""When to ask for no more recoveries: for the moment, or in this run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.hdfs_health import Gate
from airflow_kstream.model.lease_recovery import Outcome
from airflow_kstream.policy.leases.limits import Caution, Patience

_ASK_AGAIN = timedelta(seconds=2)


@dataclass
class Brake:
    """`stopped` says why, and is for good. It `holds` also for as long as the gate is not known."""

    caution: Caution
    patience: Patience
    stopped: str = ""
    next_gate: timedelta = timedelta(0)
    _first: Gate | None = None
    _last: Gate | None = None
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

    def gate_due(self, now: timedelta) -> bool:
        return not self.stopped and now >= self.next_gate

    def stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason

    def gated(self, now: timedelta, said: Gate | KstreamError) -> bool:
        """Whether another NameNode is active now than at the last answer."""
        if isinstance(said, KstreamError):
            self._unanswered(now, said)
            return False
        self._first, before = self._first or said, self._last or said
        self._last = said
        self._known, self._unknown_since = True, now
        self.next_gate = now + self.patience.gate
        self.stop(self._danger(said, self._first))
        return (before.active, before.active_since) != (said.active, said.active_since)

    def ended(self, outcome: Outcome) -> None:
        """Count what was tried to its end; a file's own troubles say nothing of the cluster."""
        self._closed += outcome is Outcome.CLOSED
        self._given_up += outcome is Outcome.GAVE_UP
        tried, allowed = self._closed + self._given_up, self.caution.failures
        if allowed is not None and tried >= self.caution.of_at_least and self._given_up > allowed * tried:
            self.stop(
                f"{self._given_up} of {tried} files were not closed in time; allowed are {allowed:.0%} (failures)"
            )

    def _unanswered(self, now: timedelta, error: KstreamError) -> None:
        self._known = False
        self.next_gate = now + _ASK_AGAIN
        silent = now - self._unknown_since
        if not error.retryable or silent >= self.patience.without_gate:
            self.stop(f"how the cluster is can't be told for {format_duration(silent)}: {error.message}")

    def _danger(self, gate: Gate, first: Gate) -> str:
        lost = gate.dead + gate.stale - first.dead - first.stale
        dangers = (
            (gate.safe_mode, "the NameNode is in safe mode"),
            (_above(gate.dead, self.caution.dead), f"{gate.dead} DataNodes are dead; allowed are {self.caution.dead}"),
            (
                _above(gate.stale, self.caution.stale),
                f"{gate.stale} DataNodes are stale; allowed are {self.caution.stale}",
            ),
            (
                _above(lost, self.caution.newly_lost),
                f"{lost} DataNodes were lost since the start; allowed are {self.caution.newly_lost} (newly_lost)",
            ),
        )
        return next((words for holds, words in dangers if holds), "")


def _above(count: int, allowed: int | None) -> bool:
    return allowed is not None and count > allowed
