"""Watched streams as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from rich.table import Table

from airflow_kstream.model.durations import format_duration
from airflow_kstream.supervise.streams.watch import Verdict
from airflow_kstream.views.tables import NOT_KNOWN, add, ago, table

_HEADINGS = ("stream", "generation", "state", "last commit", "horizon")


def streams_table(verdicts: Mapping[str, Verdict]) -> Table:
    """Return a row for each stream, by name."""
    rows = table(*_HEADINGS)
    for stream, verdict in sorted(verdicts.items()):
        add(rows, stream, str(verdict.generation or ""), _state(verdict), _last_commit(verdict), _horizon(verdict))
    return rows


def _state(verdict: Verdict) -> str:
    pulse = f", {verdict.heartbeat.pulse}" if verdict.heartbeat else ""
    # The first line names the error; a Java stack trace follows, which --json has whole.
    failure = f": {verdict.failure.strip().splitlines()[0]}" if verdict.failure.strip() else ""
    frozen = f"; frozen, {verdict.freeze_warning}" if verdict.freeze_warning else "; frozen" if verdict.freeze else ""
    return f"{verdict.why}{pulse}{failure}{frozen}"


def _last_commit(verdict: Verdict) -> str:
    age = verdict.heartbeat.commit_age if verdict.heartbeat else None
    return "" if age is None else ago(age)


def _horizon(verdict: Verdict) -> str:
    if verdict.remaining is None:
        return "none" if verdict.horizon_known else NOT_KNOWN
    if verdict.remaining < timedelta():
        return f"{format_duration(-verdict.remaining)} ago"
    return f"in {format_duration(verdict.remaining)}"
