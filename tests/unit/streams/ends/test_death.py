"""When an ended generation counts as dead, and by what proof."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState, Containers, NodeReport, NodeVerdict
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.contract import started_marker, stopped_marker
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import Looks
from airflow_kstream.model.streams.observation import Observation, OutputsLook
from airflow_kstream.model.streams.plan import Refuse, Wait
from airflow_kstream.policy.streams.ends.death import Dead, death, only_silence_proves, silence_needed
from airflow_kstream.policy.streams.restart.looks import signs
from tests.simulated.values import changed
from tests.simulated.yarn import (
    CHECKPOINT,
    NODE,
    START,
    TICKET_SPEC,
    SimulatedYarn,
    application,
    claim_of,
    containers,
    watched,
)

POLICY = TICKET_SPEC.stop
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def batches(every: timedelta, lasting: timedelta, number: int = 20) -> Checkpoint:
    offsets = {batch: START + batch * every for batch in range(number)}
    return Checkpoint(CHECKPOINT, "q", offsets, {batch: at + lasting for batch, at in offsets.items()})


def ended(found: Containers | None, point: Checkpoint | None = None, *files: str) -> Observation:
    yarn = SimulatedYarn(now=START + timedelta(days=1), files=set(files))
    yarn.claims = {1: claim_of(TICKET_SPEC, 1, START, {CHECKPOINT: Position(None, -1, -1)})}
    yarn.applications = [(1, application(1, ApplicationState.FAILED, finished=START))]
    return replace(
        yarn.look(), yarn=replace(yarn.look().yarn, containers=found), checkpoints=(point or batches(MINUTE, SECOND),)
    )


def verdict(seen: Observation, age: timedelta = timedelta()) -> Dead | Wait | Refuse:
    return death(TICKET_SPEC, seen, watched(seen, age))


def test_when_every_container_is_complete_nothing_waits_after_long_batches() -> None:
    """The review saw 1 h 20 min of nothing after a job with batches of 40 minutes."""
    seen = ended(containers(NodeVerdict.COMPLETE), batches(41 * MINUTE, 40 * MINUTE))
    assert verdict(seen) == Dead("all its containers are complete")


def test_the_drivers_own_word_is_enough() -> None:
    seen = ended(containers(NodeVerdict.UNREACHABLE), None, stopped_marker(1))
    assert verdict(seen) == Dead("it stopped before its end, and told so")


def test_one_whose_claim_was_removed_is_not_believed_to_have_done_nothing() -> None:
    seen = replace(ended(None, None, started_marker(2)), applications=())
    assert (seen.generation, seen.current) == (2, None)
    needed = silence_needed(POLICY, seen.checkpoints)
    assert isinstance(verdict(seen, needed - SECOND), Wait)
    assert isinstance(verdict(seen, needed), Dead)


def test_executors_on_unknown_nodes_get_time_to_notice_that_their_driver_is_gone() -> None:
    seen = ended(Containers(NodeReport(NODE, NodeVerdict.COMPLETE), None), batches(41 * MINUTE, 40 * MINUTE))
    assert isinstance(verdict(seen, POLICY.silence - SECOND), Wait)
    assert isinstance(verdict(seen, POLICY.silence), Dead)


def test_containers_that_run_are_waited_for_and_then_shown_to_a_person() -> None:
    seen = ended(containers(NodeVerdict.LIVE))
    assert isinstance(verdict(seen, 2 * POLICY.am_expiry - SECOND), Wait)
    refused = verdict(seen, 2 * POLICY.am_expiry)
    assert isinstance(refused, Refuse)
    assert f"{NODE}: containers still run" in refused.why


def test_an_executor_that_runs_counts_as_much_as_the_driver() -> None:
    executor = NodeReport("node2:8042", NodeVerdict.LIVE)
    seen = ended(Containers(NodeReport(NODE, NodeVerdict.COMPLETE), (executor,)))
    assert isinstance(verdict(seen, 15 * MINUTE), Wait)


@pytest.mark.parametrize("cut_off", [NodeVerdict.LOST, NodeVerdict.UNHEARD])
def test_the_driver_of_a_node_that_is_cut_off_may_run_for_twice_the_expiry_of_an_am(cut_off: NodeVerdict) -> None:
    """Cut off from YARN alone, it plans new batches for as long as its client retries: e01 1c of the review."""
    seen = ended(containers(cut_off))
    assert isinstance(verdict(seen, 2 * POLICY.am_expiry - SECOND), Wait)
    dead = verdict(seen, 2 * POLICY.am_expiry)
    assert isinstance(dead, Dead)
    assert f"{NODE}: {cut_off}" in dead.proof


def test_the_wait_for_a_node_goes_on_when_it_is_lost() -> None:
    assert signs(ended(containers(NodeVerdict.UNHEARD))) == signs(ended(containers(NodeVerdict.LOST)))


@pytest.mark.parametrize("found", [None, containers(NodeVerdict.UNREACHABLE), containers(NodeVerdict.RESTARTED)])
def test_without_proof_the_silence_is_measured_by_how_often_batches_come(found: Containers | None) -> None:
    """A trigger of 5 minutes with batches of 4 seconds: half a minute of silence is its normal state."""
    seen = ended(found, batches(5 * MINUTE, 4 * SECOND))
    assert isinstance(verdict(seen, 10 * MINUTE - SECOND), Wait)
    dead = verdict(seen, 10 * MINUTE)
    assert isinstance(dead, Dead)
    assert "its checkpoints were silent for 10m" in dead.proof


def test_silence_before_its_end_does_not_count() -> None:
    seen = ended(None)
    looks = watched(seen, timedelta(days=1))
    fresh_end = Looks({sign: timedelta() if sign.kind == "alone" else age for sign, age in looks.ages.items()})
    assert isinstance(death(TICKET_SPEC, seen, fresh_end), Wait)


def test_a_checkpoint_that_keeps_moving_is_somebody_elses() -> None:
    seen = ended(None)
    looks = watched(seen, timedelta(hours=1))
    moving = Looks({sign: timedelta() if sign.kind == "quiet" else age for sign, age in looks.ages.items()})
    refused = death(TICKET_SPEC, seen, moving)
    assert isinstance(refused, Refuse)
    assert "somebody else writes it" in refused.why


@pytest.mark.parametrize(
    ("point", "needed"),
    [
        (Checkpoint(CHECKPOINT, None), POLICY.silence),
        (batches(SECOND, SECOND), POLICY.silence),
        (batches(5 * MINUTE, SECOND), 10 * MINUTE),
        (batches(timedelta(hours=1), SECOND), POLICY.longest_silence),
    ],
)
def test_the_silence_needed_stays_within_its_limits(point: Checkpoint, needed: timedelta) -> None:
    assert silence_needed(POLICY, (point,)) == needed


def test_a_source_that_often_pauses_needs_as_long_a_silence() -> None:
    times, at = {}, START
    for batch in range(40):
        at += 20 * MINUTE if batch % 5 == 0 else SECOND
        times[batch] = at
    assert silence_needed(POLICY, (Checkpoint(CHECKPOINT, "q", times, times),)) == 20 * MINUTE


@pytest.mark.parametrize(("limit", "minutes"), [(5 * MINUTE, 10), (SECOND, 0.5), (timedelta(hours=1), 120)])
def test_checkpoints_by_the_clock_are_silent_for_twice_their_limit(limit: timedelta, minutes: float) -> None:
    """One of them is there after a death, and tells no interval."""
    point = replace(batches(MINUTE, SECOND, 1), clock=Clockwork("checkpoint", "TaskManager", limit))
    assert silence_needed(POLICY, (point,)) == minutes * MINUTE


def test_who_asked_no_nodemanager_promises_no_long_wait() -> None:
    wait = verdict(ended(None, batches(5 * MINUTE, SECOND)), MINUTE)
    assert isinstance(wait, Wait)
    assert wait.why == "the checkpoint must be silent for 10m, unless a NodeManager tells its end before"


OUTPUTS = OutputsLook(("/data/orders",))


def with_outputs(outputs: OutputsLook) -> Observation:
    """Return an end after which the checkpoints need ten minutes of silence, and no NodeManager answers."""
    return changed(ended(containers(NodeVerdict.UNREACHABLE), batches(5 * MINUTE, SECOND)), outputs=outputs)


def test_outputs_must_be_as_silent_as_the_checkpoints() -> None:
    seen = with_outputs(replace(OUTPUTS, unchanged=10 * MINUTE - SECOND))
    wait = verdict(seen, 10 * MINUTE)
    assert isinstance(wait, Wait)
    assert "the checkpoint and /data/orders must be silent for 10m" in wait.why
    assert verdict(with_outputs(replace(OUTPUTS, unchanged=10 * MINUTE)), 10 * MINUTE) == Dead(
        "its checkpoints and outputs were silent for 10m"
    )


def test_silent_outputs_are_no_proof_while_the_checkpoints_move() -> None:
    seen = with_outputs(replace(OUTPUTS, unchanged=timedelta(hours=1)))
    assert isinstance(verdict(seen, 10 * MINUTE - SECOND), Wait)


def test_outputs_that_keep_changing_are_for_a_person() -> None:
    seen = with_outputs(OUTPUTS)
    assert isinstance(verdict(seen, 20 * MINUTE), Wait)
    refused = verdict(seen, 20 * MINUTE + SECOND)
    assert isinstance(refused, Refuse)
    assert "/data/orders changed within the last 10m" in refused.why


def test_outputs_that_nobody_can_sum_up_are_for_a_person() -> None:
    seen = with_outputs(replace(OUTPUTS, doubt="Permission denied"))
    assert isinstance(verdict(seen, 10 * MINUTE), Wait)
    refused = verdict(seen, 10 * MINUTE + SECOND)
    assert isinstance(refused, Refuse)
    assert "whether anything still writes /data/orders can't be told: Permission denied" in refused.why


def test_a_person_lets_the_next_generation_follow_whatever_its_outputs_do() -> None:
    seen = changed(with_outputs(OUTPUTS), accepted={CHECKPOINT: Position("q", 19, 19)})
    assert verdict(seen, 10 * MINUTE) == Dead("its checkpoints were silent for 10m")
    assert isinstance(verdict(seen, 10 * MINUTE - SECOND), Wait)


def test_nodemanagers_prove_a_death_whatever_its_outputs_do() -> None:
    seen = changed(ended(containers(NodeVerdict.COMPLETE)), outputs=OUTPUTS)
    assert not only_silence_proves(seen)
    assert verdict(seen) == Dead("all its containers are complete")
