"""What a recovery does and never does, in a simulated cluster where anything can happen meanwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.errors import CredentialError, Denied
from airflow_kstream.model.lease_recovery import Outcome, Recovery
from airflow_kstream.policy.leases.limits import RecoveryLimits
from airflow_kstream.supervise.leases.executor import RecoveryRun
from tests.unit.leases.simulated_hdfs import LOST_LEASE, SECOND, World, let_happen


def names(count: int, folder: str = "/data") -> list[str]:
    return [f"{folder}/part-{number}" for number in range(count)]


def outcomes(run: RecoveryRun) -> Counter[Outcome]:
    return Counter(recovery.outcome for recovery in run.recoveries)


def the_one(run: RecoveryRun) -> Recovery:
    (recovery,) = run.recoveries
    return recovery


@pytest.fixture
def world() -> World:
    return World()


def test_a_dead_writers_files_are_closed_and_what_came_of_them_is_measured(world: World) -> None:
    world.add("/data/part-0", length=42)
    recovery = the_one(world.recover())
    assert recovery.outcome is Outcome.CLOSED
    assert (recovery.length_before, recovery.length_after) == (42, 42)
    assert (recovery.stamp_before, recovery.stamp_after) == (1000, 8000)
    assert recovery.asked == 1
    assert 3 <= recovery.seconds <= 6


def test_the_outcomes_come_in_the_order_of_the_targets_and_each_is_told_and_written_once(world: World) -> None:
    world.add(*names(50))
    targets = world.targets()
    run = world.recover(targets=targets)
    assert [recovery.path for recovery in run.recoveries] == [target.path for target in targets]
    assert sorted(recovery.path for recovery in world.told) == sorted(names(50))
    assert sorted(recovery.path for recovery in world.written) == sorted(names(50))


def test_a_path_that_is_meant_twice_is_asked_for_once(world: World) -> None:
    world.add("/data/part-0")
    run = world.recover(targets=world.targets() * 2)
    assert the_one(run).asked == 1


@pytest.mark.parametrize(
    ("fate", "outcome"),
    [
        ("is deleted", Outcome.GONE),
        ("is replaced", Outcome.CHANGED),
        ("grows", Outcome.CHANGED),
        ("is opened anew", Outcome.CHANGED),
        ("is closed", Outcome.ALREADY_CLOSED),
    ],
)
def test_what_is_not_as_it_was_when_that_was_decided_is_left_alone(world: World, fate: str, outcome: Outcome) -> None:
    world.add("/data/part-0")
    targets = world.targets()
    let_happen(world, fate, "/data/part-0", 0, 0)
    assert the_one(world.recover(targets=targets)).outcome is outcome
    assert world.kicks == []


def test_what_the_question_after_its_holder_closed_is_our_doing(world: World) -> None:
    world.add("/data/part-0", length=42)
    targets = [replace(target, accepted=True) for target in world.targets()]
    let_happen(world, "is closed", "/data/part-0", 0, 0)
    recovery = the_one(world.recover(targets=targets))
    assert (recovery.outcome, recovery.asked) == (Outcome.CLOSED, 0)
    assert (recovery.length_before, recovery.length_after) == (42, 42)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(Denied("Permission denied: user=watcher, access=WRITE"), Outcome.DENIED), (LOST_LEASE, Outcome.LEAKED)],
)
def test_a_refusal_for_good_is_not_asked_for_twice(world: World, answer: Denied, outcome: Outcome) -> None:
    world.add("/data/part-0", answer=answer)
    recovery = the_one(world.recover())
    assert (recovery.outcome, recovery.asked) == (outcome, 1)
    assert answer.message.rstrip(".") in recovery.why


def test_without_a_ticket_nothing_more_is_asked_for(world: World) -> None:
    world.add(*names(3), answer=CredentialError("the ticket has expired"))
    world.width = 1
    run = world.recover()
    assert outcomes(run) == {Outcome.NOT_TRIED: 3}
    assert len(world.kicks) == 1
    assert "the ticket has expired" in run.stopped


def test_a_file_that_does_not_close_is_given_up_with_words_that_help(world: World) -> None:
    world.add("/data/part-0", closes=False)
    recovery = the_one(world.recover())
    assert recovery.outcome is Outcome.GAVE_UP
    assert 900 <= recovery.seconds <= 905
    assert "not closed within 15m; its block 1 is on dn1, last heard of 2026-01-01 00:00:00 UTC" in recovery.why
    assert "recovery was begun" in recovery.why


@pytest.mark.parametrize(
    ("version", "pauses"),
    [
        ("3.4.3", [95] * 9),
        ("2.10.2", [95] * 9),
        ("2.9.0", [64, 128, 192, 256]),
        ("2.6.0-cdh5.16.2", [64, 128, 192, 256]),
        ("of ours", [95, 128, 192, 256]),
    ],
)
def test_a_recovery_is_left_alone_for_as_long_as_this_namenode_needs(
    world: World, version: str, pauses: list[int]
) -> None:
    world.version = version
    world.add("/data/part-0", closes=False)
    world.recover()
    times = [time.total_seconds() for time, _ in world.kicks]
    seen = [round(later - earlier) for earlier, later in pairwise(times)]
    assert len(seen) == len(pauses)
    assert all(0 <= pause - least <= 2 for pause, least in zip(seen, pauses, strict=True)), seen


def test_a_file_that_was_closed_and_opened_again_is_not_asked_for_a_second_time(world: World) -> None:
    """Between two polls the recovery can end and another writer append."""
    world.add("/data/part-0", closes=False)
    world.at(40, lambda w: setattr(w.files["/data/part-0"], "stamp", 9000))
    recovery = the_one(world.recover())
    assert recovery.outcome is Outcome.CHANGED
    assert recovery.asked == 1
    assert "after recovery was asked for, it was opened anew" in recovery.why


def test_a_thousand_files_of_one_datanode_are_closed_gently_within_30_seconds(world: World) -> None:
    world.add(*names(1000))
    world.per_second = 400
    run = world.recover()
    assert outcomes(run) == {Outcome.CLOSED: 1000}
    assert world.most_in_flight["dn1"] <= 256
    assert world.kicks[31][0] < SECOND
    assert world.kicks[32][0] > 3 * SECOND
    assert world.time.total_seconds() < 45, "heartbeats of 3 s; the minicluster's are of 1 s"


def test_the_bold_ask_for_all_at_once(world: World) -> None:
    world.add(*names(5000))
    run = world.recover(RecoveryLimits.unlimited())
    assert outcomes(run) == {Outcome.CLOSED: 5000}
    assert world.kicks[-1][0] < 5 * SECOND
    assert world.polls < 4 * 5000


@pytest.mark.parametrize("limits", [RecoveryLimits(), RecoveryLimits.unlimited()])
def test_of_erasure_coded_files_two_are_recovered_at_once_however_bold(world: World, limits: RecoveryLimits) -> None:
    world.add(*names(10), coded=True)
    world.add(*names(30, "/plain"))
    assert outcomes(world.recover(limits)) == {Outcome.CLOSED: 40}
    assert world.most_in_flight["coded"] == 2


def test_a_datanode_that_closes_nothing_does_not_hold_up_the_others(world: World) -> None:
    world.add(*names(200, "/stuck"), host="dn1", closes=False)
    world.add(*names(3000, "/fine"), host="dn2")
    run = world.recover()
    fine = [recovery for recovery in run.recoveries if recovery.path.startswith("/fine")]
    assert {recovery.outcome for recovery in fine} == {Outcome.CLOSED}
    latest = max((recovery.started or world.now()) - world.now() + world.time for recovery in fine)
    assert latest < timedelta(seconds=120)
    assert world.most_in_flight["dn1"] <= 32
    left = Counter(recovery.outcome for recovery in run.recoveries if recovery.path.startswith("/stuck"))
    assert left == {Outcome.GAVE_UP: 32, Outcome.NOT_TRIED: 168}
    assert "DataNode dn1 closed none of the last" in run.recoveries[199].why


def test_slow_answers_of_the_namenode_make_it_gentler(world: World) -> None:
    world.add(*names(300))
    world.latency = 2.0
    assert outcomes(world.recover()) == {Outcome.CLOSED: 300}
    assert world.most_in_flight["all"] <= 32


def test_safe_mode_at_the_start_means_that_nothing_is_tried(world: World) -> None:
    world.add(*names(3))
    world.safe_mode = True
    run = world.recover()
    assert outcomes(run) == {Outcome.NOT_TRIED: 3}
    assert (run.stopped, run.interrupted) == ("the NameNode is in safe mode", False)
    assert world.kicks == []


def test_a_short_safe_mode_is_waited_for(world: World) -> None:
    world.add(*names(100))
    world.at(0.5, lambda w: setattr(w, "safe_mode", True))
    world.at(8, lambda w: setattr(w, "safe_mode", False))
    assert outcomes(world.recover()) == {Outcome.CLOSED: 100}


def test_a_safe_mode_that_stays_stops_the_run_and_what_is_in_flight_comes_to_its_end(world: World) -> None:
    world.add(*names(100))
    world.at(0.5, lambda w: setattr(w, "safe_mode", True))
    world.at(60, lambda w: setattr(w, "safe_mode", False))
    run = world.recover()
    assert outcomes(run) == {Outcome.CLOSED: 32, Outcome.NOT_TRIED: 68}
    assert run.stopped == "the NameNode is in safe mode"


def test_datanodes_that_die_meanwhile_stop_the_run(world: World) -> None:
    world.add(*names(1000))
    world.dead = 5
    world.at(5, lambda w: setattr(w, "dead", 7))
    run = world.recover()
    assert "2 DataNodes were lost since the start" in run.stopped
    assert outcomes(run)[Outcome.NOT_TRIED] > 500


def test_too_many_files_that_do_not_close_stop_the_run(world: World) -> None:
    for number in range(40):
        world.add(*names(20, f"/dn{number}"), host=f"dn{number}", closes=number % 2 == 0)
    run = world.recover(
        replace(RecoveryLimits(), concurrency=replace(RecoveryLimits().concurrency, start=8, per_datanode=8))
    )
    assert "files were not closed in time; allowed are 5%" in run.stopped
    assert Outcome.NOT_TRIED in outcomes(run)


def test_a_failover_in_the_middle_loses_nothing(world: World) -> None:
    world.add(*names(300))
    world.at(3.2, lambda w: setattr(w, "away", True))
    world.at(25, lambda w: setattr(w, "away", False))
    assert outcomes(world.recover()) == {Outcome.CLOSED: 300}


def test_what_a_failover_cut_off_is_asked_for_again_at_once(world: World) -> None:
    world.add(*names(32))
    world.at(2, World.fail_over)
    run = world.recover()
    assert outcomes(run) == {Outcome.CLOSED: 32}
    assert {recovery.asked for recovery in run.recoveries} == {2}
    assert world.time < 20 * SECOND


def test_a_namenode_that_stays_away_ends_the_run(world: World) -> None:
    world.add(*names(300))
    world.at(1, lambda w: setattr(w, "away", True))
    run = world.recover()
    assert outcomes(run) == {Outcome.GAVE_UP: 32, Outcome.NOT_TRIED: 268}
    assert "how the cluster is can't be told" in run.stopped


def test_without_a_record_of_the_intent_nothing_is_asked_for(world: World) -> None:
    world.add(*names(3))
    world.unwritable = True
    with pytest.raises(Denied, match="/kstream"):
        world.recover()
    assert world.kicks == []


def test_a_record_that_can_not_be_written_any_more_stops_the_run(world: World) -> None:
    world.add(*names(1500))
    world.at(1, lambda w: setattr(w, "unwritable", True))
    run = world.recover()
    assert "the audit can't be written" in run.stopped
    assert {path for _, path in world.kicks} <= world.intents


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.5, 3.5, 7.1])
def test_an_interrupt_leaves_nothing_half_told(seconds: float) -> None:
    world = World()
    world.add(*names(300))
    world.at(seconds, lambda w: w.stop.set())
    run = world.recover()
    assert run.interrupted
    assert len(run.recoveries) == len(world.told) == len(world.written) == 300
    asked = {path for _, path in world.kicks}
    for recovery in run.recoveries:
        closed = not world.files[recovery.path].open
        expected = Outcome.CLOSED if closed else Outcome.UNCONFIRMED
        assert recovery.outcome is (expected if recovery.path in asked else Outcome.NOT_TRIED)


@pytest.mark.parametrize("seconds", [0.005, 0.5, 3.5])
def test_ctrl_c_in_the_middle_of_a_call_leaves_nothing_half_told(seconds: float) -> None:
    def ctrl_c(_: World) -> None:
        raise KeyboardInterrupt

    world = World()
    world.add(*names(100))
    world.at(seconds, ctrl_c)
    run = world.recover()
    assert run.interrupted
    assert [recovery.path for recovery in run.recoveries] == names(100)
    asked = {path for _, path in world.kicks}
    assert {recovery.path for recovery in run.recoveries if recovery.outcome is Outcome.NOT_TRIED}.isdisjoint(asked)
