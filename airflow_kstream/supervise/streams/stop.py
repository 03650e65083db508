"""Ending a generation: gracefully by its engine, else by a kill, until it is dead."""

from __future__ import annotations

from airflow_kstream.model.plan import Stop
from airflow_kstream.supervise.streams.engine import Stopped
from airflow_kstream.supervise.streams.run import StreamRun


def stop(run: StreamRun, step: Stop) -> Stopped | None:
    """Return the ended application and the means that ended it. Every means is idempotent.

    The marker comes first: from then on every supervisor that looks at the stream finishes this stop. Returns None when
    somebody freezes the cluster meanwhile: nothing is done to the application until that is over.

    Raises Unavailable: when even the kill is not confirmed.
    """
    run.folder.ask_to_stop(step.generation, step.why)
    ended = run.engine.stop_gracefully(run.session, run.spec, step, lambda: not run.is_frozen())
    if ended or run.is_frozen():
        return ended
    killed = run.session.yarn.kill(step.application, f"kstream: {step.why}", run.spec.stop.kill_wait)
    return Stopped(killed, "it was killed")
