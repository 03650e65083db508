"""Progress, read from a checkpoint's batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.stall import Heartbeat, Pulse
from airflow_kstream.model.streams.stream_policies import Backlog
from airflow_kstream.policy.streams.ends.death import ran
from airflow_kstream.policy.streams.pulse.heartbeat import heartbeat, overlong, overlong_batches, verified
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from tests.simulated.yarn import CHECKPOINT, START, TICKET_SPEC, SimulatedYarn, application, claim_of

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


class Watcher:
    """One who looks again, with a clock of its own."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.memory = SignMemory(clock=lambda: self.seconds)

    def pulse(self, yarn: SimulatedYarn, after: float = 0.0) -> Pulse:
        self.seconds += after
        seen = yarn.look()
        return heartbeat(POLICY, seen, self.memory.look(seen, overlong(POLICY, seen))).pulse


QUARTER = POLICY.stall_floor.total_seconds() / 4


def in_flight(batch: int, seconds: int) -> SimulatedYarn:
    """A stream whose batch has been in flight for so long by the NameNode's clock; the ones before took 10 s."""
    planned = {earlier: earlier * 20 for earlier in range(batch + 1)}
    done = {earlier: at + 10 for earlier, at in planned.items() if earlier < batch}
    return yarn_at(planned[batch] + seconds, offsets=planned, commits=done)


def test_a_batch_is_stalled_once_a_watcher_has_found_it_so_twice() -> None:
    watcher = Watcher()
    assert watcher.pulse(in_flight(5, 590)) is Pulse.HEALTHY
    assert watcher.pulse(in_flight(5, 610), after=20) is Pulse.SLOW
    assert watcher.pulse(in_flight(5, 750), after=QUARTER - 10) is Pulse.SLOW
    assert watcher.pulse(in_flight(5, 770), after=20) is Pulse.STALLED


def test_a_watcher_who_looks_once_an_hour_needs_two_looks() -> None:
    watcher = Watcher()
    assert watcher.pulse(in_flight(5, 3600)) is Pulse.SLOW
    assert watcher.pulse(in_flight(5, 7200), after=3600) is Pulse.STALLED


def test_a_namenode_that_is_ahead_of_the_former_one_makes_no_stall() -> None:
    """It fails over with a batch of two minutes in flight, and its clock is nine minutes ahead; then it is set back."""
    watcher = Watcher()
    assert watcher.pulse(in_flight(5, 120)) is Pulse.HEALTHY
    assert watcher.pulse(in_flight(5, 660), after=10) is Pulse.SLOW
    assert watcher.pulse(in_flight(5, 180), after=60) is Pulse.HEALTHY
    assert watcher.pulse(in_flight(5, 780), after=QUARTER) is Pulse.SLOW, "its time begins again"


def test_each_overlong_batch_has_its_own_time() -> None:
    watcher = Watcher()
    assert watcher.pulse(in_flight(5, 700)) is Pulse.SLOW
    assert watcher.pulse(in_flight(6, 700), after=QUARTER + 10) is Pulse.SLOW


def test_a_start_without_a_commit_is_stalled_at_the_second_verdict() -> None:
    watcher, start = Watcher(), yarn_at(601, offsets={0: 20}, commits={})
    assert watcher.pulse(start) is Pulse.STARTING
    assert watcher.pulse(start, after=QUARTER + 10) is Pulse.START_STALLED


@pytest.mark.parametrize(
    ("offsets", "query", "words"),
    [
        ({0: 20, 1: 30}, "q", "is older than it was: batch 1 is planned and 1 committed, and 3 and 3 were"),
        ({0: 20, 1: 30, 2: 40, 3: 50}, "other", "is another query's: other, and it was q's"),
        ({}, "q", "is gone: it had come to batch 3"),
    ],
)
def test_a_checkpoint_that_changes_under_a_job_is_a_verdict_of_its_own(
    offsets: dict[int, int], query: str, words: str
) -> None:
    watcher, planned = Watcher(), {batch: 20 + 10 * batch for batch in range(4)}
    yarn = yarn_at(60, offsets=planned, commits=planned)
    yarn.applications.append((1, application(1, ApplicationState.RUNNING)))
    assert watcher.pulse(yarn) is Pulse.HEALTHY
    changed = yarn_at(70, offsets=offsets, commits=offsets)
    changed.applications = yarn.applications
    seen = changed.look()
    seen = replace(seen, checkpoints=tuple(replace(point, query=query) for point in seen.checkpoints))
    beat = heartbeat(POLICY, seen, watcher.memory.look(seen))
    assert beat.pulse is Pulse.CHANGED
    assert words in beat.why


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


def test_a_job_of_dstreams_is_recognised_and_is_no_stall() -> None:
    """Its files tell nothing of its batches, so nothing is concluded from them, however long it runs."""
    yarn = yarn_at(6000, offsets={}, commits={})
    yarn.claims[1] = claim_of(TICKET_SPEC, 1, START)
    yarn.applications = [(1, application(1, ApplicationState.RUNNING))]
    point = Checkpoint(CHECKPOINT, None, dstreams=START + timedelta(seconds=5990))
    observation = replace(yarn.look(), checkpoints=(point,))
    beat = heartbeat(POLICY, observation)
    assert (beat.pulse, beat.commit_age) == (Pulse.UNKNOWN, timedelta(seconds=10))
    assert beat.why.startswith(f"{CHECKPOINT} is a checkpoint of DStreams, written 10s ago")
    moved_on = replace(point, query="q", offsets={0: START}, commits={0: START})
    assert "DStreams" not in heartbeat(POLICY, replace(observation, checkpoints=(moved_on,))).why


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


class Topic:
    """A query of a Kafka topic that committed batch 0 at START, and then nothing for so long, while records wait."""

    def __init__(self, records: int | None, why: str = "") -> None:
        self.backlog = Backlog(records, ("events",) if records else (), why)

    def beat(self, seconds: float, watcher: Watcher | None = None) -> Heartbeat:
        seen = yarn_at(int(seconds), offsets={0: 20}, commits={0: 30}).look()
        seen = replace(seen, checkpoints=tuple(replace(point, backlog=self.backlog) for point in seen.checkpoints))
        looks = watcher.memory.look(seen, overlong(POLICY, seen)) if watcher else None
        return heartbeat(POLICY, seen, looks)


def test_an_idle_topic_is_idle_and_one_whose_records_wait_is_not() -> None:
    assert Topic(0).beat(5000).pulse is Pulse.IDLE
    assert Topic(0).beat(5000).why == "batch 0 is committed and none is planned since: nothing waits in Kafka"
    waits = Topic(7).beat(5000)
    assert waits.pulse is Pulse.STALLED
    assert "although 7 records wait in events; the last plan is 1h 22m old" in waits.why


def test_input_that_waits_makes_a_stall_at_the_second_verdict() -> None:
    watcher = Watcher()
    assert Topic(7).beat(5000, watcher).pulse is Pulse.SLOW
    watcher.seconds += QUARTER
    assert Topic(7).beat(5000 + QUARTER, watcher).pulse is Pulse.STALLED


def test_kafka_that_does_not_answer_is_no_stall_and_is_named() -> None:
    beat = Topic(None, "cannot ask where events end: no answer").beat(5000)
    assert beat.pulse is Pulse.IDLE
    assert "whether input waits is not known: cannot ask where events end" in beat.why


def test_a_trigger_of_once_an_hour_lets_its_input_wait() -> None:
    point = Checkpoint(
        CHECKPOINT,
        "q",
        {batch: START + timedelta(hours=batch) for batch in range(5)},
        {batch: START + timedelta(hours=batch, seconds=30) for batch in range(5)},
        backlog=Backlog(7, ("events",)),
    )
    seen = replace(yarn_at(8 * 3600 - 60, offsets={}, commits={}).look(), checkpoints=(point,))
    assert heartbeat(POLICY, seen).pulse is Pulse.IDLE
    later = replace(seen, now=START + timedelta(hours=8, minutes=1))
    assert heartbeat(POLICY, later).pulse is Pulse.STALLED


def test_input_that_waits_is_a_stall_of_the_batch_that_is_not_planned() -> None:
    seen = yarn_at(5000, offsets={0: 20}, commits={0: 30}).look()
    seen = replace(seen, checkpoints=tuple(replace(each, backlog=Backlog(7, ("events",))) for each in seen.checkpoints))
    (stall,) = overlong_batches(POLICY, seen)
    assert (stall.batch, stall.planned) == (1, False)
    # Not for as long as the last plan is old: its input may have come just now.
    assert stall.lasts == timedelta()
    watcher = Watcher()
    watcher.memory.look(seen, overlong(POLICY, seen))
    watcher.seconds += QUARTER
    (stall,) = overlong_batches(POLICY, seen, watcher.memory.look(seen, overlong(POLICY, seen)))
    assert str(stall) == "batch 1 has input, and has not been planned for 2m 30s, longer than 10m"
