"""Where the next generation of a Flink stream begins: never with nothing, unless a person says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.flink_job import FlinkCheckpoint
from airflow_kstream.model.streams.resume import NOTHING, ResumePoint

if TYPE_CHECKING:
    from airflow_kstream.model.streams.observation import Observation


def resume_point(observation: Observation, left: Sequence[FlinkCheckpoint]) -> ResumePoint:
    """Return where the next generation begins. `left` are the complete checkpoints and savepoints of the newest one.

    That is what a person said, or the newest of these or, where that one completed none, what it began with itself.

    Raises Conflict: with the way out, when nobody knows where the stream was left.
    """
    word, claim = observation.start_word, observation.claim
    drops = word is not None and word.drops_unmapped
    if word and word.fresh:
        return NOTHING
    if word and word.path:
        return ResumePoint(word.path, word.number, drops_unmapped=drops)
    if newest := max(left, key=lambda point: point.number, default=None):
        return ResumePoint(newest.path or "", newest.number, claim.generation if claim else None, drops)
    begun = claim.start.resume if claim else None
    if begun is None:
        raise Conflict(_unknown(observation), tried=f"find where {observation.stream.name} goes on")
    return ResumePoint(begun.path, begun.number, begun.made_by, drops or begun.drops_unmapped)


def gone(observation: Observation, point: ResumePoint, why: str) -> Conflict:
    """Return the refusal to begin with what is not there any longer."""
    name = observation.stream.name
    return Conflict(
        f"{point} is where {name} goes on, and {why}: nothing is started from nothing. Restore it, or say where it "
        f"starts: {ways_out(name)}",
        tried=f"find where {name} goes on",
    )


def undecided(observation: Observation, why: str) -> Conflict:
    """Return the refusal to go back to an older state than the last generation may have left."""
    name = observation.stream.name
    return Conflict(
        f"{why}. Nothing goes back to an older state by itself; say where it starts: {ways_out(name)}",
        tried=f"find where {name} goes on",
    )


def _unknown(observation: Observation) -> str:
    name = observation.stream.name
    if observation.claim is None:
        return f"nobody said where its first generation starts: {ways_out(name)}"
    return f"nobody knows where generation {observation.generation} was left: {ways_out(name)}"


def ways_out(name: str) -> str:
    """Return the commands with which a person says where the next generation starts."""
    return (
        f"`kstream streams start {name} --resume PATH` with a savepoint or checkpoint, or "
        f"`kstream streams start {name} --fresh` without any state"
    )
