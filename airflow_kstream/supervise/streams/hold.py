"""A hold: nobody starts, restarts or stops the stream, so that the end of its credentials is the person's own care."""

from __future__ import annotations

from datetime import timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.horizon import HorizonReason
from airflow_kstream.policy.streams.held import left_as
from airflow_kstream.supervise.streams.desired import set_desired
from airflow_kstream.supervise.streams.observe import observe
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.watch import Watch


def hold(run: StreamRun, reason: str) -> str:
    """Set the desired state to held; say what that leaves the stream as, and when that ends."""
    set_desired(run, DesiredState.HELD, reason)
    try:
        return left_as(observe(run)) + _end(run)
    except KstreamError as error:
        # The word stands; what became of the stream meanwhile is only news.
        return f"how it stands can't be seen now: {error.without_advice}"


def _end(run: StreamRun) -> str:
    """Say when and why a generation that runs dies unless somebody starts the stream; nothing for one that does not."""
    name = run.spec.name
    verdict = Watch(run.session, lambda _: run.engine).round([name])[name]
    reason, left = verdict.horizon, verdict.remaining
    if not verdict.lives or left is None or reason in {None, HorizonReason.POLICY_MAX_AGE}:
        return ""
    when = f"is in {format_duration(left)}" if left > timedelta() else f"was {format_duration(-left)} ago"
    return f"; its horizon {when} ({reason}), and nobody restarts it before `kstream streams start {name}`"
