"""Recovery runs in a simulated cluster where anything can happen meanwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.errors import Conflict, CredentialError, Denied, Unavailable
from airflow_kstream.model.leases.lease import Outcome, Recovery
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.supervise.leases.executor import RecoveryRun
from tests.simulated.lease_hdfs import LOST_LEASE, SECOND, SimulatedHdfs, let_happen


def names(count: int, folder: str = "/data") -> list[str]:
    return [f"{folder}/part-{number}" for number in range(count)]


def outcomes(run: RecoveryRun) -> Counter[Outcome]:
    return Counter(recovery.outcome for recovery in run.recoveries)


def the_one(run: RecoveryRun) -> Recovery:
    (recovery,) = run.recoveries
    return recovery


@pytest.fixture
def hdfs() -> SimulatedHdfs:
    return SimulatedHdfs()


def test_recovery_closes_a_dead_writers_files_and_measures_the_outcome(hdfs: SimulatedHdfs) -> None:
    hdfs.add("/data/part-0", length=42)
    recovery = the_one(hdfs.recover())
    assert recovery.outcome is Outcome.CLOSED
    assert (recovery.change.length_before, recovery.change.length_after) == (42, 42)
    assert (recovery.change.stamp_before, recovery.change.stamp_after) == (1000, 8000)
    assert recovery.asked == 1
    assert 3 <= recovery.seconds <= 6


def test_outcomes_keep_the_order_of_targets_and_are_recorded_once(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(50))
    targets = hdfs.targets()
    run = hdfs.recover(targets=targets)
    assert [recovery.path for recovery in run.recoveries] == [target.path for target in targets]
    assert sorted(recovery.path for recovery in hdfs.reported) == sorted(names(50))
    assert sorted(recovery.path for recovery in hdfs.written) == sorted(names(50))


def test_recovery_requests_a_path_once_when_it_is_given_twice(hdfs: SimulatedHdfs) -> None:
    hdfs.add("/data/part-0")
    run = hdfs.recover(targets=hdfs.targets() * 2)
    assert the_one(run).asked == 1


@pytest.mark.parametrize(
    ("fate", "outcome"),
    [
        ("is deleted", Outcome.GONE),
        ("is replaced", Outcome.CHANGED),
        ("grows", Outcome.CHANGED),
        ("is reopened", Outcome.CHANGED),
        ("is closed", Outcome.ALREADY_CLOSED),
    ],
)
def test_recovery_leaves_a_file_alone_when_it_has_changed(hdfs: SimulatedHdfs, fate: str, outcome: Outcome) -> None:
    hdfs.add("/data/part-0")
    targets = hdfs.targets()
    let_happen(hdfs, fate, "/data/part-0", 0, 0)
    assert the_one(hdfs.recover(targets=targets)).outcome is outcome
    assert hdfs.requests == []


def test_a_file_that_the_holder_probe_closed_counts_as_closed_by_us(hdfs: SimulatedHdfs) -> None:
    hdfs.add("/data/part-0", length=42)
    targets = [replace(target, accepted=True) for target in hdfs.targets()]
    let_happen(hdfs, "is closed", "/data/part-0", 0, 0)
    recovery = the_one(hdfs.recover(targets=targets))
    assert (recovery.outcome, recovery.asked) == (Outcome.CLOSED, 0)
    assert (recovery.change.length_before, recovery.change.length_after) == (42, 42)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(Denied("Permission denied: user=watcher, access=WRITE"), Outcome.DENIED), (LOST_LEASE, Outcome.LEAKED)],
)
def test_recovery_does_not_repeat_a_request_that_was_refused_for_good(
    hdfs: SimulatedHdfs, answer: Denied, outcome: Outcome
) -> None:
    hdfs.add("/data/part-0", answer=answer)
    recovery = the_one(hdfs.recover())
    assert (recovery.outcome, recovery.asked) == (outcome, 1)
    assert answer.message.rstrip(".") in recovery.why


def test_recovery_requests_nothing_more_without_a_ticket(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(3), answer=CredentialError("the ticket has expired"))
    hdfs.width = 1
    run = hdfs.recover()
    assert outcomes(run) == {Outcome.NOT_TRIED: 3}
    assert len(hdfs.requests) == 1
    assert "the ticket has expired" in run.stopped


def test_recovery_gives_up_a_file_that_stays_open_and_explains_why(hdfs: SimulatedHdfs) -> None:
    hdfs.add("/data/part-0", closes=False)
    recovery = the_one(hdfs.recover())
    assert recovery.outcome is Outcome.GAVE_UP
    assert 900 <= recovery.seconds <= 905
    assert "not closed within 15m; its block 1 is on dn1, last reported 2026-01-01 00:00:00 UTC" in recovery.why
    assert "recovery started" in recovery.why


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
def test_recovery_waits_between_requests_as_the_namenode_version_needs(
    hdfs: SimulatedHdfs, version: str, pauses: list[int]
) -> None:
    hdfs.version = version
    hdfs.add("/data/part-0", closes=False)
    hdfs.recover()
    times = [time.total_seconds() for time, _ in hdfs.requests]
    passed = [round(later - earlier) for earlier, later in pairwise(times)]
    assert len(passed) == len(pauses)
    assert all(0 <= pause - least <= 2 for pause, least in zip(passed, pauses, strict=True)), passed


def test_recovery_does_not_request_a_file_again_when_it_was_reopened(hdfs: SimulatedHdfs) -> None:
    """Between two polls the recovery can end and another writer append."""
    hdfs.add("/data/part-0", closes=False)
    hdfs.at(40, lambda w: setattr(w.files["/data/part-0"], "stamp", 9000))
    recovery = the_one(hdfs.recover())
    assert recovery.outcome is Outcome.CHANGED
    assert recovery.asked == 1
    assert "after recovery was requested, it was reopened" in recovery.why


def test_recovery_closes_1000_files_of_one_datanode_within_20_seconds(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(1000))
    hdfs.per_second = 400
    run = hdfs.recover()
    assert outcomes(run) == {Outcome.CLOSED: 1000}
    assert hdfs.most_in_flight["dn1"] <= 512
    assert hdfs.requests[31][0] < SECOND
    assert hdfs.requests[32][0] > 3 * SECOND
    assert hdfs.time.total_seconds() < 20, "a step of its limit takes a heartbeat of 3 s"


def test_recovery_keeps_to_the_limits_that_are_set(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(300, "/one"), host="dn1")
    hdfs.add(*names(300, "/two"), host="dn2")
    run = hdfs.recover(RecoveryLimits(per_datanode=40, in_all=60))
    assert outcomes(run) == {Outcome.CLOSED: 600}
    assert 32 < hdfs.most_in_flight["dn1"] <= 40
    assert 40 < hdfs.most_in_flight["all"] <= 60


def test_recovery_gives_a_file_up_at_the_deadline_that_is_set(hdfs: SimulatedHdfs) -> None:
    hdfs.add("/data/part-0", closes=False)
    recovery = the_one(hdfs.recover(RecoveryLimits(deadline=timedelta(minutes=2))))
    assert recovery.outcome is Outcome.GAVE_UP
    assert 120 <= recovery.seconds <= 125
    assert "not closed within 2m" in recovery.why


def test_unlimited_recovery_requests_all_files_at_once(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(1000))
    run = hdfs.recover(RecoveryLimits.unlimited())
    assert outcomes(run) == {Outcome.CLOSED: 1000}
    assert hdfs.requests[-1][0] < 5 * SECOND
    assert hdfs.polls < 4 * 1000


@pytest.mark.parametrize("limits", [RecoveryLimits(), RecoveryLimits.unlimited()])
def test_every_run_recovers_at_most_two_erasure_coded_files_at_once(
    hdfs: SimulatedHdfs, limits: RecoveryLimits
) -> None:
    hdfs.add(*names(10), coded=True)
    hdfs.add(*names(30, "/plain"))
    assert outcomes(hdfs.recover(limits)) == {Outcome.CLOSED: 40}
    assert hdfs.most_in_flight["coded"] == 2


def test_a_datanode_that_closes_nothing_does_not_hold_up_the_others(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(200, "/stuck"), host="dn1", closes=False)
    hdfs.add(*names(600, "/fine"), host="dn2")
    run = hdfs.recover()
    fine = [recovery for recovery in run.recoveries if recovery.path.startswith("/fine")]
    assert {recovery.outcome for recovery in fine} == {Outcome.CLOSED}
    latest = max((recovery.started or hdfs.now()) - hdfs.now() + hdfs.time for recovery in fine)
    assert latest < timedelta(seconds=120)
    assert hdfs.most_in_flight["dn1"] <= 32
    left = Counter(recovery.outcome for recovery in run.recoveries if recovery.path.startswith("/stuck"))
    assert left == {Outcome.GAVE_UP: 32, Outcome.NOT_TRIED: 168}
    assert "DataNode dn1 closed none of its last" in run.recoveries[199].why


@pytest.mark.parametrize(
    "refusal",
    [
        Conflict("AlreadyBeingCreatedException: Committed blocks are waiting to be minimally replicated."),
        Unavailable("IOException: attempt to release a create lock on /one but file is already closed."),
    ],
)
def test_a_file_that_is_refused_again_and_again_does_not_hold_up_the_others(
    hdfs: SimulatedHdfs, refusal: Conflict | Unavailable
) -> None:
    """Each look at it may cost a request for as long as a file's deadline."""
    hdfs.add("/one", host="dn2", answer=refusal)
    hdfs.add(*names(1000))
    first, *rest = hdfs.recover().recoveries
    assert (first.outcome, {recovery.outcome for recovery in rest}) == (Outcome.GAVE_UP, {Outcome.CLOSED})
    began = hdfs.now() - hdfs.time
    assert max(recovery.started - began for recovery in rest if recovery.started) < timedelta(minutes=1)


def test_recovery_slows_down_when_the_namenode_answers_slowly(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(300))
    hdfs.latency = 2.0
    assert outcomes(hdfs.recover()) == {Outcome.CLOSED: 300}
    assert hdfs.most_in_flight["all"] <= 32


def test_recovery_tries_nothing_when_it_starts_in_safe_mode(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(3))
    hdfs.safe_mode = True
    run = hdfs.recover()
    assert outcomes(run) == {Outcome.NOT_TRIED: 3}
    assert (run.stopped, run.interrupted) == ("the NameNode is in safe mode", False)
    assert hdfs.requests == []


def test_recovery_waits_for_the_end_of_a_short_safe_mode(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(100))
    hdfs.at(0.5, lambda w: setattr(w, "safe_mode", True))
    hdfs.at(8, lambda w: setattr(w, "safe_mode", False))
    assert outcomes(hdfs.recover()) == {Outcome.CLOSED: 100}


def test_a_lasting_safe_mode_stops_the_run_and_files_in_flight_end(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(100))
    hdfs.at(0.5, lambda w: setattr(w, "safe_mode", True))
    hdfs.at(60, lambda w: setattr(w, "safe_mode", False))
    run = hdfs.recover()
    assert outcomes(run) == {Outcome.CLOSED: 32, Outcome.NOT_TRIED: 68}
    assert run.stopped == "the NameNode is in safe mode"


def test_lost_datanodes_stop_the_run(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(2000))
    hdfs.dead = 5
    hdfs.at(5, lambda w: setattr(w, "dead", 7))
    run = hdfs.recover()
    assert "2 DataNodes were lost since the start" in run.stopped
    assert outcomes(run)[Outcome.NOT_TRIED] > 500


def test_the_few_datanodes_that_are_always_away_of_thousands_stop_no_run(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(1000))
    hdfs.live, hdfs.dead = 2950, 50
    hdfs.at(5, lambda w: setattr(w, "dead", 53))
    assert outcomes(hdfs.recover()) == {Outcome.CLOSED: 1000}


@pytest.mark.parametrize(
    ("live", "dead", "then", "reason"),
    [
        (9, 11, 11, "11 DataNodes are dead (limit 10)"),
        (2939, 61, 61, "61 DataNodes are dead (limit 60)"),
        (2950, 50, 54, "4 DataNodes were lost since the start (limit 3)"),
    ],
)
def test_more_than_a_share_of_all_datanodes_stops_a_run(
    hdfs: SimulatedHdfs, live: int, dead: int, then: int, reason: str
) -> None:
    hdfs.add(*names(2000))
    hdfs.live, hdfs.dead = live, dead
    hdfs.at(5, lambda w: setattr(w, "dead", then))
    assert hdfs.recover().stopped == reason


def test_too_many_files_that_stay_open_stop_the_run(hdfs: SimulatedHdfs) -> None:
    for number in range(20):
        hdfs.add(*names(12, f"/dn{number}"), host=f"dn{number}", closes=number % 2 == 0)
    run = hdfs.recover(RecoveryLimits(per_datanode=8))
    assert "files were not closed in time (limit 5%" in run.stopped
    assert Outcome.NOT_TRIED in outcomes(run)


def test_a_failover_in_the_middle_loses_nothing(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(300))
    hdfs.at(3.2, lambda w: setattr(w, "away", True))
    hdfs.at(25, lambda w: setattr(w, "away", False))
    assert outcomes(hdfs.recover()) == {Outcome.CLOSED: 300}


def test_recovery_repeats_requests_at_once_after_a_failover(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(32))
    hdfs.at(2, SimulatedHdfs.fail_over)
    run = hdfs.recover()
    assert outcomes(run) == {Outcome.CLOSED: 32}
    assert {recovery.asked for recovery in run.recoveries} == {2}
    assert hdfs.time < 20 * SECOND


def test_an_unreachable_namenode_ends_the_run(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(300))
    hdfs.at(1, lambda w: setattr(w, "away", True))
    run = hdfs.recover()
    assert outcomes(run) == {Outcome.GAVE_UP: 32, Outcome.NOT_TRIED: 268}
    assert "cluster health has been unknown" in run.stopped


def test_recovery_requests_nothing_when_the_journal_takes_no_intent(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(3))
    hdfs.unwritable = True
    with pytest.raises(Denied, match="/kstream"):
        hdfs.recover()
    assert hdfs.requests == []


def test_a_journal_that_can_no_longer_be_written_stops_the_run(hdfs: SimulatedHdfs) -> None:
    hdfs.add(*names(1500))
    hdfs.at(1, lambda w: setattr(w, "unwritable", True))
    run = hdfs.recover()
    assert "the journal can't be written" in run.stopped
    assert {path for _, path in hdfs.requests} <= hdfs.intents


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.5, 3.5, 7.1])
def test_an_interrupt_still_reports_every_file(seconds: float) -> None:
    hdfs = SimulatedHdfs()
    hdfs.add(*names(300))
    hdfs.at(seconds, lambda w: w.stop.set())
    run = hdfs.recover()
    assert run.interrupted
    assert len(run.recoveries) == len(hdfs.reported) == len(hdfs.written) == 300
    asked = {path for _, path in hdfs.requests}
    for recovery in run.recoveries:
        closed = not hdfs.files[recovery.path].open
        expected = Outcome.CLOSED if closed else Outcome.UNCONFIRMED
        assert recovery.outcome is (expected if recovery.path in asked else Outcome.NOT_TRIED)


@pytest.mark.parametrize("seconds", [0.005, 0.5, 3.5])
def test_ctrl_c_in_the_middle_of_a_call_still_reports_every_file(seconds: float) -> None:
    def ctrl_c(_: SimulatedHdfs) -> None:
        raise KeyboardInterrupt

    hdfs = SimulatedHdfs()
    hdfs.add(*names(100))
    hdfs.at(seconds, ctrl_c)
    run = hdfs.recover()
    assert run.interrupted
    assert [recovery.path for recovery in run.recoveries] == names(100)
    asked = {path for _, path in hdfs.requests}
    assert {recovery.path for recovery in run.recoveries if recovery.outcome is Outcome.NOT_TRIED}.isdisjoint(asked)
