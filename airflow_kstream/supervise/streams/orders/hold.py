"""A hold: nobody starts, restarts or stops the stream, so the person answers for its credentials."""

from __future__ import annotations

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.policy.streams.restart.held import ends_held, left_as
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import set_desired


def hold(run: StreamRun, reason: str) -> str:
    """Set the desired state to held; say what that leaves the stream as, and when that ends."""
    set_desired(run, DesiredState.HELD, reason)
    try:
        return left_as(observe(run)) + _end(run)
    except KstreamError as error:
        # The order stands; what became of the stream meanwhile is only news.
        return f"how it stands can't be seen now: {error.without_advice}"


def _end(run: StreamRun) -> str:
    """Say when a generation that runs dies unless somebody starts the stream; nothing for one that does not."""
    verdict = Watch(run.session, lambda _: run.engine).round([run.spec.name])[run.spec.name]
    ends = verdict.credentials
    if not verdict.lives or ends.remaining is None or ends.horizon is None:
        return ""
    return ends_held(run.spec.name, ends.horizon, ends.remaining)
