"""The pulse of a job whose checkpoints come by the clock, whether or not its source brings anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Examine, Phase, Settled, Step, Stop
from airflow_kstream.model.streams.stall import Heartbeat, Pulse, Stall
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.ends.starvation import starving_environment
from airflow_kstream.policy.streams.pulse.heartbeat import heartbeat, overlong, overlong_batches
from airflow_kstream.policy.streams.pulse.stalls import step_for_stall
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from tests.simulated.yarn import CHECKPOINT, START, TICKET_SPEC, SimulatedYarn, application, claim_of

POLICY = HeartbeatPolicy(on_stall=OnStall.RESTART)
LIMIT = timedelta(minutes=20)
EXPIRED = (
    "RemoteException: token (HDFS_DELEGATION_TOKEN token 7 for streamer) is expired, current time: 2026-01-02 "
    "00:00:20, expected renewal time: 2026-01-02 00:00:14"
)
AWAY = "Call From node1/10.0.0.1 to nn1:8020 failed on connection exception: java.net.ConnectException: refused"
WORKS = Clockwork("checkpoint", "TaskManager", LIMIT, timedelta(minutes=1), workers=2)
STARVES = replace(WORKS, workers=0, refusal="exit code 1")


def seen(minutes: float, newest: float | None, clock: Clockwork = WORKS, before: int = -1) -> Observation:
    """A running job, so many minutes after its claim; its newest checkpoint, the tenth, came at minute `newest`."""
    yarn = SimulatedYarn(now=START + timedelta(minutes=minutes))
    yarn.claims[1] = claim_of(TICKET_SPEC, 1, START, {CHECKPOINT: Position(None, before, before)})
    yarn.applications = [(1, application(1, ApplicationState.RUNNING))]
    yarn.files = {"fence-000001-nonce1"}
    times: dict[int, datetime] = {} if newest is None else {10: START + timedelta(minutes=newest)}
    return replace(yarn.look(), checkpoints=(Checkpoint(CHECKPOINT, None, times, times, clock=clock),))


class Watcher:
    """One who looks again, with a clock of its own."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.memory = SignMemory(clock=lambda: self.seconds)
        self.stalls: tuple[Stall, ...] = ()
        self.step: Step | None = None

    def beat(self, look: Observation, after: timedelta = timedelta()) -> Heartbeat:
        self.seconds += after.total_seconds()
        looks = self.memory.look(look, overlong(POLICY, look))
        self.stalls = overlong_batches(POLICY, look, looks)
        self.step = next_step(replace(TICKET_SPEC, heartbeat=POLICY), look, looks, Mode.WATCH)
        return heartbeat(POLICY, look, looks)

    def watch(self, look: Observation, lasts: timedelta) -> Heartbeat:
        """Look each 15 seconds for so long at a cluster that stays as it is."""
        beat = self.beat(look)
        for _ in range(int(lasts / timedelta(seconds=15))):
            beat = self.beat(look, timedelta(seconds=15))
        return beat


MINUTE = timedelta(minutes=1)


def test_a_young_checkpoint_is_a_healthy_pulse_whatever_the_leader_says() -> None:
    for clock in (WORKS, replace(WORKS, workers=None), replace(WORKS, trouble="5 failed in a row")):
        assert heartbeat(POLICY, seen(60, 55, clock)).pulse is Pulse.HEALTHY


def test_an_old_checkpoint_is_slow_and_stalled_once_a_watcher_found_it_twice() -> None:
    watcher, clock = Watcher(), replace(WORKS, moves=False, trouble="one is in progress since 00:31:00 UTC")
    assert watcher.beat(seen(51, 30, clock)).pulse is Pulse.SLOW
    late = watcher.beat(seen(57, 30, clock), LIMIT / 4)
    assert late.pulse is Pulse.STALLED
    assert late.why == (
        "checkpoint 10 is the newest and 27m old, longer than 20m: one is in progress since 00:31:00 UTC"
    )


def test_no_clock_of_a_server_makes_a_stall_alone() -> None:
    watcher, clock = Watcher(), replace(WORKS, moves=False)
    assert watcher.beat(seen(51, 30, clock)).pulse is Pulse.SLOW
    assert watcher.beat(seen(300, 30, clock), MINUTE).pulse is Pulse.SLOW, "a NameNode that is hours ahead"


def test_a_stall_that_may_hang_is_examined_and_one_that_reads_is_not() -> None:
    for moves, stalls in ((False, 1), (True, 0), (None, 0)):
        watcher, look = Watcher(), seen(57, 30, replace(WORKS, moves=moves))
        watcher.beat(look)
        watcher.beat(look, LIMIT / 4)
        assert len(watcher.stalls) == stalls
    watcher.beat(seen(57, 30, replace(WORKS, moves=False)))
    (stall,) = watcher.stalls
    assert str(stall) == "checkpoint 11 has not come for 27m, longer than 20m"
    assert Stall.from_json(stall.to_json()) == stall


def test_an_hour_without_hdfs_is_no_stall() -> None:
    """The first look after it finds an old checkpoint, and the next one a new one."""
    watcher, still = Watcher(), replace(WORKS, moves=False)
    watcher.beat(seen(31, 30, still))
    after = watcher.beat(seen(91, 30, still), timedelta(hours=1))
    assert (after.pulse, watcher.stalls) == (Pulse.SLOW, ())
    assert watcher.beat(seen(92, 91.5), MINUTE).pulse is Pulse.HEALTHY


@pytest.mark.parametrize("clock", [STARVES, replace(WORKS, restarts=3)])
def test_a_job_without_processes_or_that_restarts_itself_is_no_hang(clock: Clockwork) -> None:
    look = seen(57, 30, replace(clock, moves=False))
    watcher = Watcher()
    watcher.beat(look)
    watcher.beat(look, LIMIT)
    assert watcher.stalls == overlong_batches(POLICY, look) == ()


def test_a_stall_that_was_kept_yesterday_is_a_batchs() -> None:
    (stall,) = overlong_batches(POLICY, seen(57, 30, replace(WORKS, moves=False)))
    kept = {name: value for name, value in stall.to_json().items() if name not in {"unit", "overdue"}}
    assert str(Stall.from_json(kept)) == "batch 11 has been in flight for 27m, longer than 20m"


@pytest.mark.parametrize(("moves", "step"), [(False, Examine), (None, Examine), (True, Settled)])
def test_a_task_that_looks_once_goes_by_the_watchers_two_readings(moves: bool | None, step: type) -> None:
    look = seen(57, 30, replace(WORKS, moves=moves))
    (stall,) = overlong_batches(POLICY, seen(57, 30, replace(WORKS, moves=False)))
    settled = Settled(Phase.RUNNING, "it runs")
    assert isinstance(step_for_stall(replace(TICKET_SPEC, heartbeat=POLICY), look, settled, stall, None), step)


def test_a_job_that_reads_is_backed_up_and_slow_until_somebody_has_to_know() -> None:
    reads = replace(WORKS, moves=True)
    watcher = Watcher()
    watcher.beat(seen(57, 30, reads))
    backed_up = watcher.beat(seen(80, 30, reads), LIMIT)
    assert backed_up.pulse is Pulse.SLOW
    assert "backed up" in backed_up.why
    assert watcher.beat(seen(120, 30, reads), LIMIT).pulse is Pulse.STALLED
    assert watcher.stalls == (), "and nothing is restarted for it"


def test_one_vertex_alone_tells_nothing_so_a_person_hears_of_it() -> None:
    watcher, look = Watcher(), seen(57, 30, replace(WORKS, moves=None))
    watcher.beat(look)
    late = watcher.beat(look, LIMIT / 4)
    assert late.pulse is Pulse.STALLED
    assert "whether the job reads records can't be told, so no restart comes of it" in late.why


def test_a_job_that_restarts_itself_three_times_without_a_checkpoint_is_stalled() -> None:
    assert heartbeat(POLICY, seen(60, 58, replace(WORKS, restarts=2))).pulse is Pulse.HEALTHY
    loops = heartbeat(POLICY, seen(60, 58, replace(WORKS, restarts=3, trouble="3 failed in a row, the last one: x")))
    assert loops.pulse is Pulse.STALLED
    assert loops.why == "it restarted 3 times inside since checkpoint 10: 3 failed in a row, the last one: x"


def test_restarts_of_an_outage_that_is_over_are_no_stall() -> None:
    """A thousand streams would be a thousand events."""
    watcher, restarted = Watcher(), replace(WORKS, restarts=4)
    assert watcher.watch(seen(63, 58, restarted), LIMIT / 4 - MINUTE).pulse is Pulse.SLOW
    assert watcher.beat(seen(67, 66.5), MINUTE / 4).pulse is Pulse.HEALTHY
    assert watcher.watch(seen(72, 66.5, restarted), LIMIT / 4).pulse is Pulse.STALLED
    assert Watcher().watch(seen(2, None, restarted), MINUTE).pulse is Pulse.STARTING


def test_a_start_has_its_timeout_and_the_first_interval() -> None:
    hourly = replace(WORKS, interval=timedelta(hours=1), limit=timedelta(hours=2))
    assert heartbeat(POLICY, seen(11, None)).pulse is Pulse.STARTING
    assert heartbeat(POLICY, seen(12, None)).pulse is Pulse.START_STALLED
    assert heartbeat(POLICY, seen(69, None, hourly)).pulse is Pulse.STARTING
    assert heartbeat(POLICY, seen(71, None, hourly)).pulse is Pulse.START_STALLED


def test_a_generation_that_stands_where_it_was_claimed_has_not_begun() -> None:
    assert heartbeat(POLICY, seen(5, 0, before=10)).pulse is Pulse.STARTING


def test_a_checkpoint_below_one_that_was_seen_is_a_change() -> None:
    watcher = Watcher()
    watcher.beat(seen(10, 9))
    gone = watcher.beat(seen(11, None), MINUTE)
    assert (gone.pulse, gone.why) == (
        Pulse.CHANGED,
        f"{CHECKPOINT} is gone: it had come to batch 10, while the job runs",
    )


def test_a_job_without_processes_stalls_after_two_minutes_with_the_words_of_yarn() -> None:
    watcher = Watcher()
    assert watcher.watch(seen(31, 30, STARVES), 2 * MINUTE - MINUTE / 4).pulse is Pulse.SLOW
    starved = watcher.watch(seen(33, 30, STARVES), MINUTE / 2)
    assert (starved.pulse, starved.starving) == (Pulse.STALLED, True)
    assert starved.why == "no TaskManager works for it: exit code 1"


def test_a_process_that_is_replaced_within_a_minute_is_no_trouble() -> None:
    watcher = Watcher()
    watcher.watch(seen(31, 30, STARVES), MINUTE)
    assert watcher.watch(seen(32, 30), MINUTE).pulse is Pulse.HEALTHY
    assert watcher.watch(seen(33, 30, STARVES), MINUTE).pulse is Pulse.SLOW, "its time begins again"


def test_a_first_process_has_the_time_of_a_start() -> None:
    watcher = Watcher()
    assert watcher.watch(seen(9, None, STARVES), 5 * MINUTE).pulse is Pulse.STARTING
    assert watcher.watch(seen(11, None, STARVES), 0 * MINUTE).pulse is Pulse.STALLED


def test_an_hour_without_a_look_is_no_hour_without_a_process() -> None:
    watcher = Watcher()
    watcher.beat(seen(31, 30, STARVES))
    assert watcher.beat(seen(91, 30, STARVES), timedelta(hours=1)).pulse is Pulse.SLOW


def test_who_looks_once_takes_the_time_since_a_checkpoint_was_due() -> None:
    assert heartbeat(POLICY, seen(32, 30, STARVES)).pulse is Pulse.SLOW
    assert heartbeat(POLICY, seen(34, 30, STARVES)).pulse is Pulse.STALLED


def test_its_words_say_why_nothing_works_or_why_nobody_knows() -> None:
    closed = "the JobManager's log has the reason, and can't be read"
    seen_by = {"exit code 1": replace(STARVES, trouble=closed), closed: replace(STARVES, refusal="", trouble=closed)}
    for words, clock in seen_by.items():
        assert heartbeat(POLICY, seen(34, 30, clock)).why == f"no TaskManager works for it: {words}"


@pytest.mark.parametrize(
    ("clock", "cause"),
    [
        (STARVES, ""),
        (replace(STARVES, refusal=EXPIRED), ""),
        (replace(STARVES, refusal=AWAY), "HDFS"),
        (replace(STARVES, refusal="Container released on a *lost* node"), "YARN"),
        (replace(STARVES, refusal="Container preempted by scheduler"), "the queue"),
        (replace(STARVES, waits=True), "the queue"),
        (replace(WORKS, refusal=AWAY), ""),
    ],
)
def test_what_several_streams_share_is_named(clock: Clockwork, cause: str) -> None:
    assert starving_environment(seen(33, 30, clock)) == cause


@pytest.mark.parametrize(
    ("clock", "before", "restarts"),
    [
        (replace(STARVES, refusal=EXPIRED), -1, True),
        (replace(STARVES, refusal=EXPIRED), 10, False),
        (replace(STARVES, refusal=AWAY), -1, False),
        (STARVES, -1, False),
        (replace(STARVES, waits=True), -1, False),
    ],
)
def test_only_a_dead_token_of_a_generation_that_worked_ends_it(clock: Clockwork, before: int, restarts: bool) -> None:
    watcher = Watcher()
    watcher.watch(seen(33, 30, clock, before), MINUTE)
    assert isinstance(watcher.step, Settled)
    watcher.watch(seen(34, 30, clock, before), 2 * MINUTE)
    assert isinstance(watcher.step, Stop) is restarts
