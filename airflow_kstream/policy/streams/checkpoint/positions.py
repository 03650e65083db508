"""Whether the next generation would continue from where the last ones came: checked before each submission.

A checkpoint that is gone, older, or another query's makes Spark start from the beginning or the end of its source, or
write batches twice, silently. Only the newest batch counts, because Spark deletes old ones (minBatchesToRetain).
A checkpoint without a known position is not this module's business: its owner decides who may use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import Looks

if TYPE_CHECKING:
    from airflow_kstream.model.streams.observation import Observation


def position_doubt(observation: Observation, looks: Looks) -> str | None:
    """Return why the next generation must not start from the checkpoints as they are, with the ways out for a person.

    None if it may: they continue what the last generation left, or a person accepted them exactly as they are.
    """
    doubts = list(_doubts(observation, looks))
    if not doubts or _accepted(observation) or observation.placed:
        return None
    return (
        f"{'; '.join(doubts)}. A person decides: restore the checkpoint, or let generation "
        f"{observation.next_generation} start from it as it is with `kstream streams accept SPEC.yaml`, "
        "or declare a new checkpoint"
    )


def _doubts(observation: Observation, looks: Looks) -> Iterator[str]:
    known = _recorded(observation, looks)
    for point in observation.checkpoints:
        before = known.get(plain_path(point.path))
        if before and before.offset >= 0:
            yield from changes(point, before)


def _recorded(observation: Observation, looks: Looks) -> dict[str, Position]:
    """Return the furthest position known for each path: the claim's, or one that was seen since."""
    claim = observation.claim
    known = {plain_path(path): at for path, at in claim.positions.items()} if claim else {}
    for path, seen in looks.furthest.items():
        before = known.get(plain_path(path))
        if before and reaches(seen, before):
            known[plain_path(path)] = seen
    return known


def reaches(position: Position, before: Position) -> bool:
    """Return True if it lacks nothing that the other one of the same query had: neither a plan nor a commit.

    One without a query may be of any.
    """
    same = before.query in (None, position.query)
    return same and position.offset >= before.offset and position.commit >= before.commit


def changes(point: Checkpoint, before: Position) -> Iterator[str]:
    """Yield in words how a checkpoint differs from one that goes on where it was."""
    at = point.position
    if point.empty:
        yield f"{point.path} is gone: it had come to batch {before.offset}"
    elif before.query is not None and at.query != before.query:
        yield f"{point.path} is another query's: {at.query or 'none'}, and it was {before.query}'s"
    elif at.offset < before.offset or at.commit < before.commit:
        yield (
            f"{point.path} is older than it was: batch {at.offset} is planned and {at.commit} committed, "
            f"and {before.offset} and {before.commit} were"
        )


def _accepted(observation: Observation) -> bool:
    """Return True if a person accepted these very positions: what has moved since then was not seen by anybody."""
    if observation.folder.accepted is None:
        return False
    accepted = {plain_path(path): at for path, at in observation.folder.accepted.items()}
    return all(accepted.get(plain_path(point.path)) == point.position for point in observation.checkpoints)
