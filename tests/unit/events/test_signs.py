"""Signs of each kind of event: it begins once, it ends once, and a healthy stream has none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.streams.event import Event, EventKind, Ledger
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import Blocked, Obstacle
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.policy.events.bundles import compare
from airflow_kstream.policy.events.signs import OF_A_STREAM, Signs, known, troubles
from tests.simulated.signs import (
    ABORTED,
    BLIND,
    BREAKER,
    DEAD,
    FROZEN,
    HEALTHY,
    HOUR,
    KILLED,
    MINUTE,
    NOW,
    NOWHERE,
    STALLED,
    STARTING,
    STOPPED,
    overdue,
)
from tests.simulated.values import changed


def told(*looks: Signs) -> list[str]:
    """Return the events of these looks, one a minute, an end with a minus before it."""
    ledger, lines = Ledger(), []
    for minute, signs in enumerate(looks):
        ledger, events = compare(ledger, troubles(signs), known(signs), NOW + minute * MINUTE, "prod", "orders")
        # Each look finds what the last one left, as after a restart of every component.
        ledger = Ledger.from_json(ledger.to_json())
        lines += [_line(event) for event in events]
    return lines


def _line(event: Event) -> str:
    return f"{'-' if event.ended else ''}{event.kind.value}"


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        (EventKind.OVERDUE, overdue(5 * HOUR, 37 * HOUR)),
        (EventKind.BLOCKED, ABORTED),
        (EventKind.BLOCKED, changed(HEALTHY, blocked=Blocked(Obstacle.PREFLIGHT, NOW, "the keytab is wrong"))),
        (EventKind.BLOCKED, changed(HEALTHY, blocked=Blocked(Obstacle.REFUSED, None, "somebody else writes"))),
        (EventKind.BREAKER, BREAKER),
        (EventKind.STALLED, STALLED),
        (EventKind.STALLED, changed(HEALTHY, pulse=Pulse.START_STALLED, works=False)),
        (EventKind.STARVING, changed(STALLED, starving=True)),
        (EventKind.NOT_REPLACEABLE, changed(HEALTHY, not_replaceable="since yesterday")),
        (EventKind.KEEPER, changed(HEALTHY, keeper="its last word is old")),
        (EventKind.QUEUED, changed(HEALTHY, queued_too_long=True)),
        (EventKind.KILLED, KILLED),
        (EventKind.FROZEN, FROZEN),
        (EventKind.FORMER_SPEC, changed(HEALTHY, former_spec=True)),
        (EventKind.NO_CHECKPOINT, NOWHERE),
        (EventKind.CHANGED, changed(HEALTHY, pulse=Pulse.CHANGED, pulse_why="/data is older than it was")),
        (EventKind.BLIND, BLIND),
        (EventKind.KEYTAB_ROTATED, changed(HEALTHY, horizon=HorizonReason.KEYTAB_ROTATED)),
    ],
)
def test_each_event_begins_once_and_ends_once(kind: EventKind, sign: Signs) -> None:
    assert told(HEALTHY, sign, sign, sign, HEALTHY, HEALTHY) == [kind.value, f"-{kind.value}"]


def test_every_kind_of_a_stream_has_a_sign() -> None:
    shown = [overdue(5 * HOUR, 37 * HOUR), ABORTED, BREAKER, STALLED, KILLED, BLIND]
    shown += [FROZEN, NOWHERE, changed(HEALTHY, pulse=Pulse.CHANGED), changed(HEALTHY, former_spec=True)]
    shown += [changed(HEALTHY, queued_too_long=True), changed(HEALTHY, horizon=HorizonReason.KEYTAB_ROTATED)]
    shown += [changed(HEALTHY, not_refreshed="no answer"), changed(STALLED, starving=True)]
    shown += [changed(HEALTHY, not_replaceable="since yesterday"), changed(HEALTHY, keeper="its last word is old")]

    assert {trouble.kind for signs in shown for trouble in troubles(signs)} == OF_A_STREAM


def test_what_starves_for_the_clusters_sake_is_the_clusters_event_alone() -> None:
    starves = changed(STALLED, starving=True)
    shared = changed(starves, shared="HDFS")
    assert told(HEALTHY, shared, shared, HEALTHY) == []
    assert told(HEALTHY, starves, shared, starves, HEALTHY) == ["nothing_works", "-nothing_works"]


@pytest.mark.parametrize(
    "life",
    [
        (HEALTHY,),
        (STARTING, STARTING, HEALTHY),
        (HEALTHY, changed(HEALTHY, pulse=Pulse.IDLE), HEALTHY),
        # A planned restart: due, between two generations, started, verified.
        (overdue(MINUTE / 2, 42 * HOUR), replace(DEAD, settled=False), STARTING, HEALTHY),
        # Ended without a plan, and followed in its pace.
        (HEALTHY, DEAD, DEAD, STARTING, HEALTHY),
        # Stopped, held and started by a person.
        (HEALTHY, STOPPED, STOPPED, STARTING, HEALTHY),
        # A minute without a conclusion is nobody's trouble.
        (HEALTHY, replace(BLIND, blind=False), HEALTHY),
        # A freeze holds back what is due: that is a person's will.
        (changed(HEALTHY, held_back=True, frozen=True, blocked=Blocked(Obstacle.FREEZE, None, "frozen")), HEALTHY),
        # A stopped stream's checkpoint is silent.
        (changed(STOPPED, pulse=Pulse.STALLED),),
    ],
)
def test_a_healthy_life_tells_nothing(life: tuple[Signs, ...]) -> None:
    assert told(*life) == []


@pytest.mark.parametrize(
    ("by", "left", "is_told"),
    [
        (4 * HOUR, 38 * HOUR, False),
        (4.3 * HOUR, 37.7 * HOUR, True),
        # Where tokens live for minutes, a tenth is less than a round.
        (timedelta(seconds=20), timedelta(seconds=25), False),
        (timedelta(seconds=61), timedelta(seconds=-16), True),
        (MINUTE, None, False),
        (HOUR, None, True),
    ],
)
def test_a_restart_is_overdue_by_a_tenth_of_what_was_left(by: timedelta, left: timedelta | None, is_told: bool) -> None:
    assert told(overdue(by, left)) == (["restart_overdue"] if is_told else [])


def test_a_blind_hour_ends_no_event_and_begins_none_but_its_own() -> None:
    unreachable = replace(BLIND, blind=False)

    assert told(STALLED, BLIND, unreachable, BLIND, STALLED, HEALTHY) == ["stalled", "blind", "-blind", "-stalled"]


def test_a_probe_of_an_open_circuit_breaker_closes_it_only_by_a_commit() -> None:
    probe = (BREAKER, replace(DEAD, settled=False), STARTING)

    assert told(*probe, *probe, *probe, HEALTHY) == ["breaker_open", "-breaker_open"]


def test_a_stream_without_a_checkpoint_closes_its_breaker_by_running() -> None:
    """It commits nothing: running for long is all that it can show."""
    probe = changed(STARTING, pulse=None)

    assert told(BREAKER, probe, probe, changed(probe, works=True)) == ["breaker_open", "-breaker_open"]


def test_a_death_in_a_freeze_ends_no_event() -> None:
    dead = changed(DEAD, frozen=True, held_back=True)

    assert told(FROZEN, dead, changed(dead, held_back=False)) == ["frozen_past_its_time"]
    assert told(FROZEN, dead, STARTING) == ["frozen_past_its_time", "-frozen_past_its_time"]


def test_a_stream_that_ran_as_before_and_is_stopped_runs_as_nothing() -> None:
    assert told(changed(HEALTHY, former_spec=True), changed(STOPPED, former_spec=True)) == [
        "former_spec",
        "-former_spec",
    ]


def test_a_restarted_stream_stays_stalled_until_its_successor_makes_progress() -> None:
    assert told(STALLED, DEAD, STARTING, STALLED, DEAD, STARTING, HEALTHY) == ["stalled", "-stalled"]


def test_a_watcher_that_begins_again_ends_no_stall_before_its_second_verdict() -> None:
    slow = changed(HEALTHY, pulse=Pulse.SLOW)

    assert told(HEALTHY, slow, HEALTHY) == []
    assert told(slow, STALLED, slow, STALLED, HEALTHY) == ["stalled", "-stalled"]


def test_a_person_who_stops_a_stream_ends_what_was_told_of_it() -> None:
    assert told(STALLED, STOPPED) == ["stalled", "-stalled"]
    assert told(BREAKER, STOPPED) == ["breaker_open", "-breaker_open"]
    assert told(KILLED, STOPPED) == ["waits_for_a_person", "-waits_for_a_person"]


def test_a_freeze_ends_no_event() -> None:
    frozen = changed(HEALTHY, held_back=True, frozen=True, rests=True)

    assert told(ABORTED, frozen, frozen, ABORTED, HEALTHY) == ["restart_blocked", "-restart_blocked"]
