"""Progress, read from a checkpoint's batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.application import ApplicationState
from airflow_kstream.model.checkpoint import Checkpoint
from airflow_kstream.model.generation import Position
from airflow_kstream.model.heartbeat import Pulse
from airflow_kstream.policy.streams.death import ran
from airflow_kstream.policy.streams.heartbeat import heartbeat, verified
from tests.unit.simulated_yarn import CHECKPOINT, START, TICKET_SPEC, SimulatedYarn, application, claim_of

POLICY = TICKET_SPEC.heartbeat


def yarn_at(seconds: int, *, offsets: dict[int, int], commits: dict[int, int], before: int = -1) -> SimulatedYarn:
    """A stream claimed at START after commit `before`, seen `seconds` later; batches by their second."""
    yarn = SimulatedYarn(now=START + timedelta(seconds=seconds))
    yarn.claims[1] = claim_of(TICKET_SPEC, 1, START, {CHECKPOINT: Position("q", before, before)})
    yarn.offsets = {batch: START + timedelta(seconds=at) for batch, at in offsets.items()}
    yarn.commits = {batch: START + timedelta(seconds=at) for batch, at in commits.items()}
    return yarn


def pulse(yarn: SimulatedYarn) -> Pulse:
    return heartbeat(POLICY, yarn.look()).pulse


def test_a_fresh_commit_of_this_generation_is_a_healthy_pulse_and_verifies_it() -> None:
    yarn = yarn_at(40, offsets={0: 20}, commits={0: 30})
    assert pulse(yarn) is Pulse.HEALTHY
    assert verified(yarn.look())


def test_commits_of_the_generation_before_do_not_verify_this_one() -> None:
    yarn = yarn_at(40, offsets={7: -20}, commits={7: -10}, before=7)
    assert pulse(yarn) is Pulse.STARTING
    assert not verified(yarn.look())


def test_no_commit_within_the_start_timeout_is_a_stalled_start() -> None:
    yarn = yarn_at(601, offsets={0: 20}, commits={})
    assert pulse(yarn) is Pulse.START_STALLED


def test_a_batch_that_takes_far_longer_than_the_others_is_stalled() -> None:
    others = {batch: batch * 300 for batch in range(5)}
    done = {batch: at + 200 for batch, at in others.items()}
    within = yarn_at(1500 + 790, offsets={**others, 5: 1500}, commits=done)
    beyond = yarn_at(1500 + 810, offsets={**others, 5: 1500}, commits=done)
    assert pulse(within) is Pulse.HEALTHY
    assert pulse(beyond) is Pulse.STALLED


def test_a_commit_whose_plan_is_gone_is_no_batch_in_flight() -> None:
    """Somebody deletes the checkpoint while a batch runs, whose commit is the first file of the next one."""
    assert pulse(yarn_at(40, offsets={}, commits={3: 30})) is Pulse.HEALTHY
    assert pulse(yarn_at(7200, offsets={}, commits={3: 30})) is Pulse.IDLE


def test_nothing_planned_for_long_is_idle_and_not_stalled() -> None:
    assert pulse(yarn_at(7200, offsets={0: 20}, commits={0: 30})) is Pulse.IDLE


def test_without_a_declared_checkpoint_nothing_is_known() -> None:
    observation = replace(yarn_at(40, offsets={}, commits={}).look(), checkpoints=())
    assert heartbeat(POLICY, observation).pulse is Pulse.UNKNOWN


def test_a_job_that_writes_elsewhere_than_declared_is_no_slow_start() -> None:
    running = [(1, application(1, ApplicationState.RUNNING))]
    late, soon, waiting = (yarn_at(seconds, offsets={}, commits={}) for seconds in (601, 599, 601))
    late.claims[1] = soon.claims[1] = waiting.claims[1] = claim_of(TICKET_SPEC, 1, START)
    late.applications = soon.applications = running
    waiting.applications = [(1, application(1, ApplicationState.ACCEPTED))]
    assert pulse(late) is Pulse.NO_CHECKPOINT
    assert CHECKPOINT in heartbeat(POLICY, late.look()).why
    assert pulse(soon) is Pulse.STARTING
    assert pulse(waiting) is Pulse.START_STALLED


@pytest.mark.parametrize("spelled", ["hdfs://ns" + CHECKPOINT, CHECKPOINT + "/", "/" + CHECKPOINT])
def test_a_checkpoint_in_another_spelling_is_the_one_of_the_claim(spelled: str) -> None:
    """Otherwise a generation without a commit had worked, and its circuit breaker never counted it."""
    claim = claim_of(TICKET_SPEC, 1, START, {spelled: Position("q", 7, 7)})
    for commits, moved in ((8, False), (9, True)):
        batches = dict.fromkeys(range(commits), START)
        point = Checkpoint(CHECKPOINT, "q", batches, batches)
        seen = replace(SimulatedYarn().look(), claim=claim, checkpoints=(point,))
        assert verified(seen) is moved
        assert ran(seen) is moved
