"""Who is woken by whose blindness, and when: the policy alone, its time an argument."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.streams.plan import Phase, Settled, Step, Stop
from airflow_kstream.policy.streams.pulse.blindness import ClusterSight, Sight, backoff, reason_to_wake
from airflow_kstream.policy.streams.restart.blocked import blocked_again, held_back
from tests.simulated.restarts import PATIENCE, SEES

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RESTART = Stop(1, "application_1_0001", "its horizon", preflight=True)


def unseen(sight: Sight, cluster: ClusterSight, until: int, every: int = 10) -> list[int]:
    """Return when a stream is woken that is looked at, in vain, until then; each woken task comes back at once."""
    wakings = []
    for now in range(0, until, every):
        sight = sight.failed(now, shared=sight.shared)
        cluster = cluster.failed(now, sight)
        if reason_to_wake(sight, cluster, now):
            wakings.append(now)
            cluster = cluster.woke(now, sight)
            sight = replace(sight, wakings=sight.wakings + 1, looked=float(now), failing_since=None)
    return wakings


def test_a_stream_that_sees_wakes_nobody() -> None:
    assert reason_to_wake(replace(SEES, plan=5.0), ClusterSight(0.0), 10_000.0) == ""


@pytest.mark.parametrize("shared", [True, False])
def test_a_trouble_that_persists_wakes_ever_less_often(shared: bool) -> None:
    wakings = unseen(replace(SEES, shared=shared), ClusterSight(0.0), 7200)
    assert wakings[:4] == [300, 900, 1800, 2700]
    assert all(after - before <= 900 for before, after in pairwise(wakings))


def test_a_declared_patience_of_more_than_a_quarter_of_an_hour_is_kept() -> None:
    patience = 3600.0
    assert [backoff(patience, tries) for tries in range(3)] == [patience] * 3
    assert unseen(replace(SEES, patience=patience), ClusterSight(0.0), 4000, every=100) == [3600]


HANDED_ON = Sight(looked=1000.0, patience=PATIENCE, blind_since=0.0, wakings=9, confirmed=False)


@pytest.mark.parametrize("plan", [None, 500.0])
def test_a_new_watcher_keeps_the_pause_between_two_wakings(plan: float | None) -> None:
    """A triggerer that restarts every ten minutes would put off a waking after a quarter of an hour for ever."""
    sight = replace(HANDED_ON, plan=plan).handed_on(1800.0).failed(1800.0, shared=False)
    assert not reason_to_wake(sight, ClusterSight(), 1899.0)
    assert reason_to_wake(sight, ClusterSight(), 1900.0)


def test_a_new_watcher_of_a_known_blindness_fails_for_a_minute_first() -> None:
    """One look that fails proves nothing. A triggerer that restarts within each patience wakes nevertheless."""
    sight = replace(HANDED_ON, looked=5500.0).handed_on(7000.0).failed(7000.0, shared=False)
    assert not reason_to_wake(sight, ClusterSight(), 7059.0)
    assert reason_to_wake(sight, ClusterSight(), 7060.0)


def test_a_new_watcher_wakes_one_task_of_a_cluster_that_it_has_never_seen() -> None:
    """After the triggerer restarts, an outage wakes one task at a time, as before, however long each has waited."""
    sight = replace(HANDED_ON, looked=5600.0).handed_on(7260.0).failed(7260.0, shared=True)
    cluster = ClusterSight().failed(7260.0, sight)
    assert not reason_to_wake(sight, cluster, 7559.0)
    cluster = cluster.failed(7560.0, sight)
    assert reason_to_wake(sight, cluster, 7560.0)
    assert not reason_to_wake(sight, cluster.woke(7560.0, sight), 7600.0)


@pytest.mark.parametrize("shared", [True, False])
def test_a_new_watcher_that_knows_nothing_yet_waits_as_if_the_stream_had_been_seen(shared: bool) -> None:
    """What it was handed on is of the deferral: the stream may have been seen for days since."""
    sight, cluster = replace(HANDED_ON, wakings=0).failed(90_000.0, shared=shared), ClusterSight(seen=90_000.0)
    assert not reason_to_wake(sight, cluster, 90_299.0)
    assert reason_to_wake(sight, cluster, 90_300.0)
    assert (sight.unseen_since, sight.blind_for(90_010.0)) == (90_000.0, 10.0)
    assert not sight.blind_alone(cluster, 90_359.0)
    assert sight.blind_alone(cluster, 90_360.0)


def test_a_new_watchers_first_failed_look_wakes_no_task_of_a_due_restart() -> None:
    sight = replace(HANDED_ON, plan=2000.0).failed(90_000.0, shared=False)
    assert not reason_to_wake(sight, ClusterSight(), 90_059.0)
    assert reason_to_wake(sight, ClusterSight(), 90_060.0)


def test_a_blindness_is_over_if_its_task_was_not_woken_in_time() -> None:
    """The watcher of those days saw the stream since, or it would have woken the task again."""
    sight = HANDED_ON.handed_on(2801.0).failed(2801.0, shared=False)
    assert (sight.confirmed, sight.blind_for(2811.0)) == (False, 10.0)
    assert HANDED_ON.handed_on(2800.0).unseen_since == 0.0


def test_a_plan_that_passed_long_ago_is_none_for_a_new_watcher() -> None:
    """A watcher of that time would have woken the task. One that passed while no watcher was there for long is due."""
    planned = replace(HANDED_ON, plan=90_000.0)
    assert planned.handed_on(91_800.0).is_due(91_800.0)
    assert not planned.handed_on(91_801.0).is_due(91_801.0)
    assert replace(planned, looked=91_000.0).handed_on(92_000.0).is_due(92_000.0), "its task looked since"


def test_what_a_watcher_has_seen_itself_needs_no_confirmation() -> None:
    assert HANDED_ON.saw(500.0) == replace(HANDED_ON, plan=500.0, blind_since=None, wakings=0, confirmed=True)


def test_a_stream_that_is_alone_in_the_dark_does_not_wait_for_the_clusters_turn() -> None:
    """Another one is seen all the time, so the trouble is its own though its kind is the cluster's."""
    sight = replace(SEES, shared=True).failed(100.0, shared=True)
    assert reason_to_wake(sight, ClusterSight(399.0), 401.0)
    assert not reason_to_wake(sight, ClusterSight(90.0), 401.0)


def test_a_stream_whose_restart_is_due_is_woken_at_that_moment() -> None:
    assert unseen(replace(SEES, shared=True, plan=100.0), ClusterSight(0.0), 400) == [100, 160, 280]


def test_one_that_waits_for_its_turn_holds_back_only_those_that_had_more() -> None:
    """One that has left, because a person detached it, does so for no longer than a few minutes."""
    due = replace(SEES, plan=0.0).failed(0.0, shared=False)
    cluster = ClusterSight().woke(0.0, due).failed(10.0, due)
    again, becomes_due = replace(due, wakings=1), replace(due, wakings=5, plan=1.0)
    assert not reason_to_wake(again, cluster, 249.0)
    assert reason_to_wake(due, cluster, 20.0)
    assert reason_to_wake(becomes_due, cluster, 20.0)
    assert reason_to_wake(again, cluster, 250.0)
    assert reason_to_wake(again, cluster.woke(20.0, due), 90.0)


def test_a_clusters_event_begins_after_the_patience_and_ends_with_a_conclusion() -> None:
    dark = SEES.failed(0.0, shared=True)
    cluster = ClusterSight(0.0).failed(0.0, dark).failed(299.0, dark)
    assert cluster.unreachable_since is None
    cluster = cluster.failed(300.0, dark)
    assert cluster.unreachable_since == 0.0
    assert cluster.saw(301.0).unreachable_since is None


def test_a_pause_doubles_up_to_a_quarter_of_an_hour() -> None:
    assert [backoff(60.0, tries) for tries in (0, 1, 2, 3, 4, 99)] == [60, 120, 240, 480, 900, 900]


def test_a_blocked_restart_keeps_its_begin_and_doubles_its_pauses() -> None:
    first = blocked_again(None, NOW, None)
    second = blocked_again(first, NOW + timedelta(minutes=1), None)
    assert (first.since, second.since, second.tries) == (NOW, NOW, 2)
    assert second.retry_at == NOW + timedelta(minutes=3)


@pytest.mark.parametrize(
    ("step", "word", "after", "waits"),
    [
        (RESTART, None, 59, True),
        (RESTART, None, 60, False),
        (RESTART, NOW, 1, False),
        (replace(RESTART, preflight=False), None, 1, False),
        (Settled(Phase.ENDED, "it died"), None, 1, False),
        (None, None, 1, False),
    ],
)
def test_only_the_same_planned_restart_waits_for_its_next_try(
    step: Step | None, word: datetime | None, after: int, waits: bool
) -> None:
    blocked = blocked_again(None, NOW, None)
    assert held_back(blocked, step, word, NOW + timedelta(seconds=after)) is waits
