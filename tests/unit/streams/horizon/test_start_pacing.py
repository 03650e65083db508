"""When hundreds of streams are due at the same moment, they start in turns: the dying first, so many a minute."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import Submit
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.start_pacing import SPACING, Turns, may_wait
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.yarn import TICKET_SPEC, SimulatedYarn, watched

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EVERY = 60.0


def started(waits: dict[str, timedelta], looks: int = 50) -> dict[str, float]:
    """Let each stream look once in EVERY seconds, in the order of their names; return when each one starts."""
    turns, times, now = Turns(), dict[str, float](), 1000.0
    for stream, wait in waits.items():
        turns = turns.waits(stream, wait, now)
    for _ in range(looks):
        for stream in waits.keys() - times.keys():
            turns, wait_for = turns.waits(stream, waits[stream], now).take(stream, now, EVERY)
            if wait_for is not None:
                times[stream] = now + wait_for
        now += EVERY
    return times


def test_sixty_start_ten_a_minute_by_the_nearness_of_their_ends() -> None:
    waits = {f"stream-{number:03d}": timedelta(minutes=(number * 37) % 60) for number in range(60)}
    times = started(waits)
    order = sorted(times, key=lambda stream: times[stream])
    assert order == sorted(waits, key=lambda stream: (waits[stream], stream))
    assert len(order) == 60
    gaps = [later - earlier for earlier, later in pairwise(times[stream] for stream in order)]
    assert set(gaps[1:]) == {SPACING}
    for begin in times.values():
        # One at once, then one in each slot.
        assert sum(begin <= time < begin + 60 for time in times.values()) <= 11


def test_none_starts_past_its_end_while_there_is_room() -> None:
    waits = {f"stream-{number:03d}": timedelta(seconds=60 + 7 * number) for number in range(60)}
    assert all(time - 1000 <= waits[stream].total_seconds() for stream, time in started(waits).items())


def test_one_that_is_alone_starts_at_once() -> None:
    assert Turns().waits("orders", DAY, 50.0).take("orders", 50.0, EVERY)[1] == 0


def test_one_that_is_down_comes_between_those_that_die_soon_and_the_others() -> None:
    turns = Turns().waits("down", timedelta(minutes=30), 0.0).waits("dies", HOUR / 6, 0.0).waits("lives", DAY, 0.0)
    assert [turns.take(stream, 0.0, HOUR.total_seconds())[1] for stream in ("dies", "down", "lives")] == [0, 6, 12]


def test_waiting_moves_no_deadline_away() -> None:
    turns = Turns().waits("down", timedelta(minutes=30), 0.0)
    for minute in range(1, 29):
        turns = turns.waits("down", timedelta(minutes=30), 60.0 * minute)
    turns = turns.waits("lives", timedelta(minutes=20), 60.0 * 28)
    assert turns.take("down", 60.0 * 28, 0.0)[1] == 0


def test_one_that_is_gone_keeps_nobody_waiting() -> None:
    turns = Turns().waits("gone", timedelta(), 0.0).waits("orders", DAY, 300.0)
    assert turns.take("orders", 300.0, 0.0)[1] is None
    assert turns.waits("orders", DAY, 601.0).take("orders", 601.0, 0.0)[1] == 0


def waits_of(yarn: SimulatedYarn) -> timedelta | None:
    seen = yarn.look()
    return may_wait(next_step(TICKET_SPEC, seen, watched(seen), Mode.WATCH), seen, horizon_of(TICKET_SPEC, seen))


class TestWhatWaitsForATurn:
    @pytest.fixture
    def yarn(self) -> SimulatedYarn:
        yarn = SimulatedYarn()
        yarn.carry_out(Submit(1, "its first generation"))
        yarn.arrive()
        yarn.pass_time(60)
        return yarn

    def test_a_stream_that_is_well_waits_for_none(self, yarn: SimulatedYarn) -> None:
        assert waits_of(yarn) is None

    def test_a_requested_restart_has_until_its_end(self, yarn: SimulatedYarn) -> None:
        yarn.desired = Desired(restart_up_to=1)
        wait = waits_of(yarn)
        assert wait
        assert wait > 6 * DAY

    def test_it_has_its_place_while_the_cluster_is_frozen(self, yarn: SimulatedYarn) -> None:
        yarn.desired = Desired(restart_up_to=1)
        due = waits_of(yarn)
        yarn.freeze = Freeze(1, yarn.now + HOUR, "ada", "a new NameNode")
        assert waits_of(yarn) == due

    def test_what_a_person_wants_stopped_is_stopped_at_once(self, yarn: SimulatedYarn) -> None:
        yarn.desired = Desired(DesiredState.STOPPED)
        assert waits_of(yarn) is None
        yarn.freeze = Freeze(1, yarn.now + HOUR, "ada", "a new NameNode")
        assert waits_of(yarn) is None

    def test_an_intruder_is_killed_at_once(self, yarn: SimulatedYarn) -> None:
        yarn.carry_out(Submit(2, "as if the first were dead"))
        yarn.arrive(at_once=False)
        assert waits_of(yarn) is None

    def test_one_that_is_down_has_half_an_hour(self, yarn: SimulatedYarn) -> None:
        yarn.desired = replace(Desired(), at=yarn.now + HOUR)
        yarn.end("application_1_0001", ApplicationState.FAILED)
        assert waits_of(yarn) == timedelta(minutes=30)
