"""Who is woken by whose blindness, and when: the policy alone, its time an argument."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.plan import Phase, Settled, Step, Stop
from airflow_kstream.policy.streams.blindness import STAGGER, ClusterSight, Sight, backoff, reason_to_wake
from airflow_kstream.policy.streams.blocked_restart import blocked_again, held_back

PATIENCE = 300.0
SEES = Sight(looked=0.0, patience=PATIENCE)
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
            sight = replace(sight, wakings=sight.wakings + 1, looked=float(now), failing_since=None)
            cluster = cluster.woke(now)
    return wakings


def dark(plans: list[float], until: int) -> list[tuple[int, int]]:
    """Return when which stream of a cluster is woken that nobody sees. Looks come often, and always in one order."""
    cluster, sights, woken = ClusterSight(0.0), [replace(SEES, shared=True, plan=plan) for plan in plans], []
    for now in range(0, until, 5):
        for number, before in enumerate(sights):
            sight = before.failed(now, shared=True)
            cluster = cluster.failed(now, sight)
            if reason_to_wake(sight, cluster, now):
                woken.append((now, number))
                sight = replace(sight, wakings=sight.wakings + 1, looked=float(now), failing_since=None)
                cluster = cluster.woke(now)
            sights[number] = sight
    return woken


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


HANDED_ON = Sight(looked=1000.0, patience=PATIENCE, blind_since=0.0, wakings=9)


@pytest.mark.parametrize("plan", [None, 500.0])
def test_a_new_watcher_keeps_the_pause_between_two_wakings(plan: float | None) -> None:
    """A triggerer that restarts every ten minutes would put off a waking after a quarter of an hour for ever."""
    sight = replace(HANDED_ON, plan=plan).failed(1500.0, shared=False)
    assert not reason_to_wake(sight, ClusterSight(), 1899.0)
    assert reason_to_wake(sight, ClusterSight(), 1900.0)


def test_a_new_watcher_wakes_one_task_of_a_cluster_that_it_has_never_seen() -> None:
    """After the triggerer restarts, an outage wakes one task at a time, as before, however long each has waited."""
    sight = HANDED_ON.failed(7260.0, shared=True)
    cluster = ClusterSight().failed(7260.0, sight)
    assert not reason_to_wake(sight, cluster, 7559.0)
    cluster = cluster.failed(7560.0, sight)
    assert reason_to_wake(sight, cluster, 7560.0)
    assert not reason_to_wake(sight, cluster.woke(7560.0), 7600.0)


@pytest.mark.parametrize("shared", [True, False])
def test_a_new_watchers_first_look_that_fails_wakes_and_tells_nobody(shared: bool) -> None:
    """What it was handed on is of the deferral: the stream may have been seen for days since."""
    sight, cluster = HANDED_ON.failed(90_000.0, shared=shared), ClusterSight(seen=90_000.0)
    assert not reason_to_wake(sight, cluster, 90_000.0)
    assert not reason_to_wake(sight, cluster, 90_299.0)
    assert reason_to_wake(sight, cluster, 90_300.0)
    assert not sight.blind_alone(cluster, 90_059.0)
    assert sight.blind_alone(cluster, 90_360.0)


def test_a_blindness_that_an_earlier_watcher_saw_end_is_forgotten() -> None:
    sight = HANDED_ON.failed(90_000.0, shared=False)
    assert sight.recalls(None) == sight
    assert sight.recalls(999.0) == sight, "the task itself stores what it saw"
    seen = sight.recalls(89_000.0)
    assert (seen.wakings, seen.blind_for(90_010.0)) == (0, 10.0)
    assert HANDED_ON.recalls(89_000.0).blind_for(90_010.0) == 0


def test_a_stream_that_is_alone_in_the_dark_does_not_wait_for_the_clusters_turn() -> None:
    """Another one is seen all the time, so the trouble is its own though its kind is the cluster's."""
    sight = replace(SEES, shared=True).failed(100.0, shared=True)
    assert reason_to_wake(sight, ClusterSight(399.0), 401.0)
    assert not reason_to_wake(sight, ClusterSight(90.0), 401.0)


def test_a_stream_whose_restart_is_due_is_woken_at_that_moment() -> None:
    assert unseen(replace(SEES, shared=True, plan=100.0), ClusterSight(0.0), 400) == [100, 160, 280]


def test_all_streams_of_a_dark_cluster_are_woken_once_before_one_is_woken_again() -> None:
    """Forty-five whose pauses are a quarter of an hour would take each turn, and the others had none."""
    order = [number for _, number in dark([0.0] * 100, 3600)]
    assert order[:100] == list(range(100))
    assert len(order) > 3000 / STAGGER, "each is woken again, too"


def test_a_first_waking_waits_only_for_its_turn() -> None:
    """One that has left, because a person detached it, holds nobody back for longer than a few minutes."""
    due = replace(SEES, plan=0.0).failed(0.0, shared=False)
    cluster = ClusterSight().woke(0.0).failed(10.0, due)
    again = replace(due, wakings=1)
    assert not reason_to_wake(again, cluster, 249.0)
    assert reason_to_wake(due, cluster, 20.0)
    assert reason_to_wake(again, cluster, 250.0)


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
