"""Ending a generation: gracefully by its engine, else by a kill, until it is dead."""

from __future__ import annotations

from collections.abc import Callable

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.policy.streams.restart.former_spec import spec_to_stop
from airflow_kstream.supervise.streams.engines import engine_for
from airflow_kstream.supervise.streams.folder.engine import StopResult
from airflow_kstream.supervise.streams.folder.run import StreamRun


def stop(
    run: StreamRun, step: Stop, before_means: Callable[[], None] = lambda: None, claim: Claim | None = None
) -> StopResult | None:
    """Return the ended application and the means that ended it. Every means is idempotent.

    Where another engine is declared now, it is stopped as what it was claimed as.

    The marker comes first: from then on every supervisor that looks at the stream finishes this stop. Returns None when
    somebody freezes the cluster meanwhile: nothing is done to the application until that is over. `before_means` is
    called before each means that is none of the driver's own.

    Raises Unavailable: when even the kill is not confirmed.
    """
    try:
        run.folder.ask_to_stop(step.generation, step.why)
    except Denied:
        # Not as the stream itself: whom YARN lets end it need not be able to write in its folder.
        if run.declared:
            raise

    def may_go_on() -> bool:
        before_means()
        return not run.is_frozen()

    spec = spec_to_stop(run.spec, claim)
    ended = engine_for(run, spec).stop_gracefully(run.session, spec, step, may_go_on)
    if ended or not may_go_on():
        return ended
    killed = run.session.yarn.kill(step.application, f"kstream: {step.why}", run.spec.stop.kill_wait)
    return StopResult(killed, "it was killed")
