"""A batch that a watcher found stalled: what is left alone, and what two examinations together show."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.contract import generation_of_file, is_known_file, past_stalls, stalled_marker
from airflow_kstream.model.streams.generation import Desired, DesiredState, Position
from airflow_kstream.model.streams.plan import Examine, Phase, Settled, Step, Stop
from airflow_kstream.model.streams.stall import Examination, PastStall, Stall
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.pulse.heartbeat import overlong_batches
from airflow_kstream.policy.streams.pulse.stalls import StallFinding, finding, step_for_stall, why_left_alone
from tests.simulated.yarn import CHECKPOINT, START, TICKET_SPEC, SimulatedYarn, application, claim_of

SPEC = replace(TICKET_SPEC, heartbeat=HeartbeatPolicy(on_stall=OnStall.RESTART))
LIMIT = SPEC.heartbeat.stall_floor
RUNS = Settled(Phase.RUNNING, "application_1_0001 is RUNNING")
HUNG = "executor 1 on node7, task 0.0 in stage 3.0: reads from a socket"


def stalled(generation: int = 2, batch: int = 5, lasts: timedelta = LIMIT * 1.3) -> SimulatedYarn:
    """Return the cluster of a generation that committed all batches before this one, which is in flight."""
    began = START + timedelta(minutes=10)
    yarn = SimulatedYarn(now=began + lasts)
    yarn.claims[generation] = claim_of(SPEC, generation, START, {CHECKPOINT: Position("q", batch - 3, batch - 3)})
    yarn.applications = [(generation, application(generation, ApplicationState.RUNNING))]
    yarn.offsets = {number: began + (number - batch) * timedelta(seconds=30) for number in range(batch + 1)}
    yarn.commits = {number: at + timedelta(seconds=20) for number, at in yarn.offsets.items() if number < batch}
    return yarn


def the_stall(yarn: SimulatedYarn) -> Stall:
    (stall,) = overlong_batches(SPEC.heartbeat, yarn.look())
    return stall


def step(yarn: SimulatedYarn, found: StallFinding | None, stall: Stall | None = None) -> Step:
    return step_for_stall(SPEC, yarn.look(), RUNS, stall or the_stall(yarn), found)


def test_evidence_comes_before_a_restart() -> None:
    yarn = stalled()
    first = step(yarn, None)
    assert isinstance(first, Examine)
    assert first.why == "batch 5 has been in flight for 13m, longer than 10m: what hangs?"
    then = step(yarn, StallFinding.HANGS)
    assert isinstance(then, Stop)
    assert (then.why, then.preflight) == ("batch 5 has been in flight for 13m, longer than 10m, and hangs", True)
    assert then.hung == the_stall(yarn)


@pytest.mark.parametrize("found", [StallFinding.MOVES, StallFinding.UNCERTAIN])
def test_what_moves_or_was_seen_once_is_left_alone(found: StallFinding) -> None:
    assert step(stalled(), found) is RUNS


def test_a_batch_that_is_committed_while_it_is_examined_is_left_alone() -> None:
    yarn = stalled()
    stall = the_stall(yarn)
    yarn.commits[5] = yarn.now
    assert step(yarn, StallFinding.HANGS, stall) is RUNS
    yarn.offsets[6] = yarn.now
    yarn.now += LIMIT * 2
    assert step(yarn, StallFinding.HANGS, stall) is RUNS


def test_a_stall_of_another_generation_or_claim_restarts_nothing() -> None:
    yarn = stalled()
    stall = the_stall(yarn)
    assert step(yarn, StallFinding.HANGS, replace(stall, generation=1)) is RUNS
    assert step(yarn, StallFinding.HANGS, replace(stall, claim="another")) is RUNS


def test_a_start_without_a_commit_is_no_stall_however_long_it_takes() -> None:
    """It may restore its state for an hour."""
    yarn = stalled(lasts=timedelta(hours=5))
    yarn.claims[2] = claim_of(SPEC, 2, START, {CHECKPOINT: Position("q", 5, 4)})
    assert overlong_batches(SPEC.heartbeat, yarn.look()) == ()


@pytest.mark.parametrize("state", [DesiredState.STOPPED, DesiredState.HELD])
def test_what_a_person_wants_as_it_is_is_not_examined(state: DesiredState) -> None:
    yarn = stalled()
    yarn.desired = Desired(state)
    assert step(yarn, None) is RUNS


def test_nothing_but_a_running_application_is_examined() -> None:
    yarn = stalled()
    yarn.applications = [(2, application(2, ApplicationState.ACCEPTED))]
    assert step(yarn, None) is RUNS


def test_by_default_a_stall_is_reported_and_restarts_nothing() -> None:
    yarn = stalled()
    reports = replace(SPEC, heartbeat=HeartbeatPolicy())
    assert why_left_alone(reports, yarn.look(), the_stall(yarn)) == "on_stall is report"
    assert step_for_stall(reports, yarn.look(), RUNS, the_stall(yarn), StallFinding.HANGS) is RUNS


def ended_for_a_stall(yarn: SimulatedYarn, generation: int, batch: int, ago: timedelta) -> None:
    yarn.files.add(stalled_marker(PastStall(generation, batch, yarn.now - ago)))


def test_a_batch_that_hung_before_is_for_a_person() -> None:
    yarn = stalled()
    ended_for_a_stall(yarn, 1, 5, timedelta(days=30))
    assert why_left_alone(SPEC, yarn.look(), the_stall(yarn)) == (
        "batch 5 hung before, and the restart did not help: a person has to look"
    )
    assert step(yarn, StallFinding.HANGS) is RUNS


def test_a_restart_that_was_begun_for_the_batch_is_finished() -> None:
    """Its supervisor may have died between the record and the stop marker."""
    yarn = stalled()
    ended_for_a_stall(yarn, 2, 5, timedelta(minutes=1))
    assert why_left_alone(SPEC, yarn.look(), the_stall(yarn)) == ""


def test_three_restarts_for_stalls_are_all_of_a_day() -> None:
    yarn = stalled(generation=9)
    for number in (6, 7, 8):
        ended_for_a_stall(yarn, number, number - 4, timedelta(hours=23))
    assert why_left_alone(SPEC, yarn.look(), the_stall(yarn)) == (
        "3 restarts for stalls within 24h are all that stall_restarts_per_day allows"
    )
    yarn.files.clear()
    for minutes in (1, 2, 3):
        ended_for_a_stall(yarn, 8, 4, timedelta(minutes=minutes))
    assert why_left_alone(SPEC, yarn.look(), the_stall(yarn)) == ""
    yarn.files.clear()
    for number in (6, 7, 8):
        ended_for_a_stall(yarn, number, number - 4, timedelta(hours=25))
    assert why_left_alone(SPEC, yarn.look(), the_stall(yarn)) == ""


def test_the_name_of_a_record_tells_all_of_it_and_outlives_its_generation() -> None:
    past = PastStall(7, 4812, START)
    name = stalled_marker(past)
    assert past_stalls([name, "stop-000007", "stalled-x"]) == (past,)
    assert is_known_file(name)
    assert generation_of_file(name) is None


class Examined:
    """Examinations of one batch, each so long after the first one."""

    def __init__(self) -> None:
        self.stall = the_stall(stalled(lasts=LIMIT * 3))

    def at(self, seconds: float, **more: object) -> Examination:
        usual = {"dumped": True, "hangs": (HUNG,), "progress": "stage 3.0: inputRecords=100"}
        return Examination(self.stall, START + timedelta(seconds=seconds), **usual | more)  # type: ignore[arg-type]


QUARTER = LIMIT.total_seconds() / 4


def test_two_examinations_a_quarter_of_the_threshold_apart_make_a_hang() -> None:
    examined = Examined()
    assert finding(None, examined.at(0)) is StallFinding.UNCERTAIN
    assert finding(examined.at(0), examined.at(QUARTER - 1)) is StallFinding.UNCERTAIN
    assert finding(examined.at(0), examined.at(QUARTER)) is StallFinding.HANGS


def test_examinations_of_another_batch_or_generation_do_not_count() -> None:
    examined = Examined()
    for other in (replace(examined.stall, batch=4), replace(examined.stall, claim="another")):
        assert finding(replace(examined.at(0), stall=other), examined.at(QUARTER)) is StallFinding.UNCERTAIN


def test_a_skewed_task_that_reads_one_record_more_does_not_hang() -> None:
    examined = Examined()
    more = examined.at(QUARTER, progress="stage 3.0: inputRecords=101")
    assert finding(examined.at(0), more) is StallFinding.MOVES
    assert finding(None, examined.at(0, moves=True)) is StallFinding.MOVES


def test_threads_that_move_do_not_hang_whatever_is_counted() -> None:
    examined = Examined()
    assert finding(examined.at(0), examined.at(QUARTER, hangs=())) is StallFinding.MOVES
    assert finding(examined.at(0, dumped=False), examined.at(QUARTER)) is StallFinding.UNCERTAIN


def test_a_job_that_nobody_can_look_into_hangs_only_where_its_batches_show_that() -> None:
    """Checkpoints that come by the clock may fail while the job reads: then its leader alone tells, or nobody."""
    examined = Examined()
    unseen = {"dumped": False, "hangs": (), "progress": ""}
    assert finding(examined.at(0, **unseen), examined.at(QUARTER, **unseen)) is StallFinding.HANGS
    examined.stall = replace(examined.stall, unit="checkpoint", overdue=True)
    assert finding(examined.at(0, **unseen), examined.at(QUARTER, **unseen)) is StallFinding.UNCERTAIN
    assert finding(examined.at(0), examined.at(QUARTER)) is StallFinding.HANGS


def test_ten_times_the_longest_batch_is_left_alone_whatever_is_seen() -> None:
    """The threshold is four times the longest: three times that has to pass."""
    examined = Examined()
    examined.stall = replace(examined.stall, lasts=LIMIT * 2.9)
    assert finding(examined.at(0), examined.at(QUARTER)) is StallFinding.UNCERTAIN
    unseen = {"dumped": False, "hangs": (), "progress": ""}
    assert finding(examined.at(0, **unseen), examined.at(QUARTER, **unseen)) is StallFinding.UNCERTAIN
    examined.stall = replace(examined.stall, lasts=LIMIT * 3)
    assert finding(None, examined.at(0, **unseen)) is StallFinding.UNCERTAIN
    counted = finding(examined.at(0, **unseen | {"progress": "1"}), examined.at(QUARTER, **unseen | {"progress": "2"}))
    assert counted is StallFinding.MOVES
    assert finding(examined.at(0, **unseen), examined.at(QUARTER, **unseen)) is StallFinding.HANGS


def test_an_examination_is_read_as_it_was_written_and_anything_else_is_none() -> None:
    examined = Examined().at(0)
    assert Examination.from_json(examined.to_json()) == examined
    strange: object
    for strange in (None, {}, {"stall": {}}, {**examined.to_json(), "at": "soon"}, {**examined.to_json(), "hangs": 3}):
        assert Examination.from_json(strange) is None
