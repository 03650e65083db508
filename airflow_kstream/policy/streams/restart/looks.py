"""The signs in an observation, and the waits that are measured by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import Sign, SignKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.checkpoint.positions import reaches
from airflow_kstream.policy.streams.ends.death import ran
from airflow_kstream.policy.streams.pulse.by_clock import starves


def signs(observation: Observation) -> frozenset[Sign]:
    """Return what a supervisor has to time at this look."""
    return frozenset(_signs(observation))


def further(seen: Mapping[str, Position], observation: Observation) -> dict[str, Position]:
    """Return the furthest position seen in each checkpoint. Another query's position does not replace it."""
    return furthest(seen, {point.path: point.position for point in observation.checkpoints})


def furthest(seen: Mapping[str, Position], more: Mapping[str, Position]) -> dict[str, Position]:
    """Return the further one of both positions for each checkpoint, as `further`."""
    positions = dict(seen)
    for path, at in more.items():
        before = positions.get(path)
        if before is None or reaches(at, before):
            positions[path] = at
    return positions


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
    if current and starves(observation):
        yield Sign(SignKind.STARVING, current.id)
    if observation.yarn.containers:
        yield from (
            Sign(SignKind.LOST, report.node) for report in observation.yarn.containers.reports if report.cut_off
        )
