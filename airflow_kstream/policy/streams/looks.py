"""The signs in an observation, and the waits that are measured by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_kstream.model.containers import NodeVerdict
from airflow_kstream.model.generation import Position
from airflow_kstream.model.looks import Sign, SignKind
from airflow_kstream.model.observation import Observation
from airflow_kstream.policy.streams.death import ran


def signs(observation: Observation) -> frozenset[Sign]:
    """Return what a supervisor has to time at this look."""
    return frozenset(_signs(observation))


def further(seen: Mapping[str, Position], observation: Observation) -> dict[str, Position]:
    """Return the furthest position seen in each checkpoint. Another query's position does not replace it."""
    furthest = dict(seen)
    for point in observation.checkpoints:
        before, at = furthest.get(point.path), point.position
        if before is None or before.query is None or (at.query == before.query and at.offset >= before.offset):
            furthest[point.path] = at
    return furthest


def _signs(observation: Observation) -> Iterator[Sign]:
    claim, current = observation.claim, observation.current
    # An application that arrives late may vanish between two looks: from then on it is absent for another reason.
    arrived = ran(observation)
    if not any(app.alive for _, app in observation.applications):
        yield Sign(SignKind.ALONE, (observation.generation, current.id if current else None, arrived))
    if claim and claim.generation == observation.generation and current is None:
        yield Sign(SignKind.ABSENT, (claim.generation, claim.nonce, arrived))
    if (claim.generation if claim else 0) < observation.generation:
        yield Sign(SignKind.UNCLAIMED, observation.generation)
    yield Sign(
        SignKind.QUIET, tuple((point.path, point.position, point.last_move) for point in observation.checkpoints)
    )
    if observation.containers:
        for report in observation.containers.nodes(NodeVerdict.LOST):
            yield Sign(SignKind.LOST, report.node)
