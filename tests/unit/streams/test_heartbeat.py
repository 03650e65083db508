"""What a checkpoint's batches say about progress."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.model.generation import Position
from airflow_kstream.model.heartbeat import Pulse
from airflow_kstream.policy.streams.heartbeat import heartbeat, verified
from tests.unit.simulated_yarn import CHECKPOINT, START, TICKET_SPEC, World, claim_of

POLICY = TICKET_SPEC.heartbeat


def world_at(seconds: int, *, offsets: dict[int, int], commits: dict[int, int], before: int = -1) -> World:
    """A stream claimed at START after commit `before`, seen `seconds` later; batches by their second."""
    world = World(now=START + timedelta(seconds=seconds))
    world.claims[1] = claim_of(TICKET_SPEC, 1, START, {CHECKPOINT: Position("q", before, before)})
    world.offsets = {batch: START + timedelta(seconds=at) for batch, at in offsets.items()}
    world.commits = {batch: START + timedelta(seconds=at) for batch, at in commits.items()}
    return world


def pulse(world: World) -> Pulse:
    return heartbeat(POLICY, world.look()).pulse


def test_a_fresh_commit_of_this_generation_is_a_healthy_pulse_and_verifies_it() -> None:
    world = world_at(40, offsets={0: 20}, commits={0: 30})
    assert pulse(world) is Pulse.HEALTHY
    assert verified(world.look())


def test_commits_of_the_generation_before_do_not_verify_this_one() -> None:
    world = world_at(40, offsets={7: -20}, commits={7: -10}, before=7)
    assert pulse(world) is Pulse.STARTING
    assert not verified(world.look())


def test_no_commit_within_the_start_timeout_is_a_stalled_start() -> None:
    world = world_at(601, offsets={0: 20}, commits={})
    assert pulse(world) is Pulse.START_STALLED


def test_a_batch_that_takes_far_longer_than_the_others_is_stalled() -> None:
    others = {batch: batch * 300 for batch in range(5)}
    done = {batch: at + 200 for batch, at in others.items()}
    within = world_at(1500 + 790, offsets={**others, 5: 1500}, commits=done)
    beyond = world_at(1500 + 810, offsets={**others, 5: 1500}, commits=done)
    assert pulse(within) is Pulse.HEALTHY
    assert pulse(beyond) is Pulse.STALLED


def test_nothing_planned_for_long_is_idle_and_not_stalled() -> None:
    assert pulse(world_at(7200, offsets={0: 20}, commits={0: 30})) is Pulse.IDLE


def test_without_a_declared_checkpoint_nothing_is_known() -> None:
    seen = replace(world_at(40, offsets={}, commits={}).look(), checkpoints=())
    assert heartbeat(POLICY, seen).pulse is Pulse.UNKNOWN
