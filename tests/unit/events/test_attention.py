"""Which streams of a fleet need a hand: those that a person has to act for, and no others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.streams.event import EventKind
from airflow_kstream.model.streams.plan import Blocked, Obstacle
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.policy.events.attention import (
    UNSEEN,
    Look,
    Patience,
    hands,
    maybe_unwatched,
    pending,
    pending_from_json,
    unwatched,
)
from airflow_kstream.policy.events.signs import Signs
from tests.simulated.signs import (
    ABORTED,
    BLIND,
    BREAKER,
    DAMAGED,
    DEAD,
    FROZEN,
    HEALTHY,
    HOUR,
    KILLED,
    NOW,
    NOWHERE,
    STALLED,
    STARTING,
    STOPPED,
    needed,
    overdue,
)
from tests.simulated.values import changed


@pytest.mark.parametrize("signs", [HEALTHY, STARTING, STOPPED, DEAD, changed(HEALTHY, pulse=None)])
def test_a_stream_that_nobody_has_to_act_for_needs_no_hand(signs: Signs) -> None:
    assert needed(Look(signs)) == ()


@pytest.mark.parametrize(
    ("look", "kind", "way_out"),
    [
        (Look(ABORTED), EventKind.BLOCKED, "remove what stands in the way"),
        (Look(overdue(5 * HOUR, 37 * HOUR)), EventKind.OVERDUE, "the log of its task"),
        (Look(BREAKER), EventKind.BREAKER, "`kstream streams start stream-0` closes"),
        (Look(KILLED), EventKind.KILLED, "`kstream streams stop stream-0` gives it up"),
        (Look(STALLED), EventKind.STALLED, "`kstream streams restart stream-0`"),
        (Look(FROZEN), EventKind.FROZEN, "`kstream streams unfreeze`"),
        (Look(NOWHERE), EventKind.NO_CHECKPOINT, "declare the checkpoint"),
        (Look(changed(HEALTHY, pulse=Pulse.CHANGED)), EventKind.CHANGED, "restore it, or find out who writes it"),
        (Look(changed(HEALTHY, former_spec=True)), EventKind.FORMER_SPEC, "correct its declaration"),
        (Look(changed(HEALTHY, queued_too_long=True)), EventKind.QUEUED, "make room"),
        (Look(DAMAGED), UNSEEN, "remove the cause"),
        (Look(DEAD, due=True), EventKind.UNWATCHED, "unpause its DAG"),
        (Look(BLIND, shared=True), UNSEEN, "remove the cause"),
    ],
)
def test_each_kind_of_trouble_has_its_way_out(look: Look, kind: str, way_out: str) -> None:
    [hand] = needed(look)
    assert (hand.subject, hand.kind) == ("stream-0", kind)
    assert way_out in hand.way_out
    assert hand.sentence.startswith("stream-0: ")


@pytest.mark.parametrize("look", [Look(DEAD, due=True), Look(BLIND, shared=True)])
def test_what_the_next_round_may_settle_needs_a_hand_only_when_it_lasts(look: Look) -> None:
    assert needed(look, later=timedelta(minutes=15)) == ()
    assert needed(look, later=timedelta(minutes=21)) != ()


DUE = replace(overdue(timedelta(minutes=10), 40 * HOUR), why="its restart is due")
LATE = replace(overdue(5 * HOUR, 37 * HOUR), why="its restart is due")


def told(look: Look, *, later: timedelta = HOUR) -> bool:
    """Return whether two looks that saw the same, so far apart, tell that nobody watches the stream."""
    named = {"orders": look}
    return bool(unwatched(named, pending(named, pending(named, {}, NOW), NOW + later), NOW + later))


@pytest.mark.parametrize("signs", [DUE, LATE, changed(LATE, pulse=Pulse.STALLED), changed(DEAD, former_spec=True)])
def test_what_explains_no_wait_does_not_hide_that_nobody_watches(signs: Signs) -> None:
    """Least of all that the restart is overdue: that is when it matters, and only a watcher tells it."""
    assert told(Look(signs, due=True))
    [hand] = needed(Look(signs, due=True))
    assert hand.kind == EventKind.UNWATCHED
    assert "nobody seems to watch it" in hand.why


@pytest.mark.parametrize("signs", [ABORTED, BREAKER, KILLED, changed(FROZEN, held_back=True)])
def test_a_step_that_something_holds_back_is_not_called_unwatched(signs: Signs) -> None:
    assert not told(Look(changed(signs, pulse=None), due=True))


def test_a_restart_between_two_looks_is_another_step() -> None:
    first, second = {"orders": Look(DEAD, generation=3, due=True)}, {"orders": Look(DEAD, generation=4, due=True)}
    waiting = pending(second, pending(first, {}, NOW), NOW + HOUR)
    assert hands(second, waiting, NOW + HOUR) == ()


def test_streams_that_take_turns_after_an_outage_are_not_called_unwatched() -> None:
    """A thousand starts at ten a minute take a hundred minutes."""
    fleet = {f"stream-{number}": Look(DEAD, due=True) for number in range(1000)}
    kept = {name: one.to_json() for name, one in pending(fleet, {}, NOW).items()}
    assert len(json.dumps(kept)) < 100_000
    assert needed(*fleet.values(), later=timedelta(minutes=100)) == ()
    assert needed(*[Look(DEAD, due=True)] * 1000, later=Patience().of(1000)) != ()


def test_a_cause_of_the_cluster_needs_one_hand() -> None:
    broken = changed(DEAD, blocked=Blocked(Obstacle.ENVIRONMENT, NOW, "it waits"))
    away = [Look(broken, environment="nn1:8020")] * 20
    freeze, namenode, kafka = needed(*[Look(FROZEN)] * 300, *away, Look(broken, environment="kafka:9092"))
    assert freeze.subject == "300 streams"
    assert "and 290 more" in freeze.why
    assert (kafka.subject, kafka.why) == ("stream-320", "kafka:9092")
    assert namenode.subject == "20 streams"


def test_the_most_urgent_hand_of_a_stream_is_shown_and_the_most_urgent_stream_first() -> None:
    worst = changed(STALLED, refusal="its queue is gone")
    assert [hand.kind for hand in needed(Look(STALLED), Look(worst))] == [EventKind.BLOCKED, EventKind.STALLED]


@pytest.mark.parametrize(
    "kept",
    [None, [], "x", {"orders": None}, {"orders": ["unseen", "x", "y"]}, {"orders": ["unseen", 1, "2026-03-01"]}],
)
def test_what_another_version_kept_is_seen_for_the_first_time(kept: object) -> None:
    assert pending_from_json(kept) == {}


def test_a_stalled_stream_that_a_person_stopped_needs_no_hand() -> None:
    assert needed(Look(changed(STOPPED, pulse=Pulse.STALLED))) == ()


def test_a_stream_that_is_not_seen_or_is_due_may_still_be_unwatched() -> None:
    """Its event ends when a look sees that somebody acted: neither while HDFS fails for its folder, nor by a clock that
    began again afterwards."""
    due = Look(overdue(HOUR, HOUR), due=True)
    looks = {"unseen": Look(BLIND), "due": due, "well": Look(HEALTHY)}
    assert maybe_unwatched(looks, pending(looks, {}, NOW)) == {"unseen", "due"}
