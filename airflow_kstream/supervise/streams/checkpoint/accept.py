"""A person's permission that a stream may start from its checkpoints as they are."""

from __future__ import annotations

from airflow_kstream.model.errors import Conflict
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.streams.checkpoint.ownership import require_available
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe


def accept_checkpoints(run: StreamRun, reason: str) -> tuple[int, tuple[str, ...]]:
    """Let the next generation start from the positions that the declared checkpoints have now, and from no others.

    Returns its number and what was accepted, a line for each checkpoint.

    Raises Conflict: when an application of the stream lives, which still moves them, or when the stream does not own
    them: then a take-over is the word.
    """
    require_submittable(run.spec, run.cluster)
    observation = observe(run)
    living = [app.id for _, app in observation.applications if app.alive]
    if living:
        raise Conflict(f"{', '.join(living)} still runs", tried=f"accept the checkpoints of {run.spec.name}")
    require_available(run, observation)
    number = observation.next_generation
    run.folder.accept(number, {point.path: point.position for point in observation.checkpoints}, reason)
    return number, tuple(
        f"{point.path}: batch {point.position.offset} planned, {point.position.commit} committed, "
        f"query {point.position.query or 'none'}"
        for point in observation.checkpoints
    )
