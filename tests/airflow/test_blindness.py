"""A stream that nobody sees wakes its task, whatever the cause; a cluster that nobody reaches wakes one of all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Denied, InvalidInput, Unavailable
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.policy.streams.pulse.blindness import STAGGER
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.simulated.engine import FakeEngine
from tests.simulated.fleet import Fleet
from tests.simulated.servers import CLUSTER, ONE_WEEK

MINUTE = 60.0
DENIED = Denied("Permission denied: user=watcher")
# The streams whose progress can't be read, and what is raised instead.
Why = dict[str, Exception]


@dataclass
class Unreadable(FakeEngine):
    why: Why = field(default_factory=dict)

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        if spec.name in self.why:
            raise self.why[spec.name]
        return super().progress(session, spec, newest)


@pytest.fixture
def unreadable(fleet: Fleet) -> Why:
    engine = Unreadable(fleet.hdfs, fleet.yarn)
    fleet.engine = fleet.watchers_engine = engine
    return engine.why


def names(count: int) -> list[str]:
    return [f"stream-{number}" for number in range(count)]


def test_a_fleet_whose_resource_manager_is_away_wakes_three_tasks_at_most(fleet: Fleet) -> None:
    """Of twelve streams, in 20 minutes; and the cluster's event begins once and ends once."""
    fleet.declare(*names(12))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(20 * MINUTE)
        assert fleet.gauges["kstream.simulated.cluster.unreachable"][-1] == 1
        assert fleet.gauges["kstream.simulated.stream-7.blind_seconds"][-1] > 19 * MINUTE
        fleet.yarn.away = False
        await asyncio.sleep(MINUTE)

    fleet.live(story)
    assert 1 <= len(fleet.wakings) <= 3, fleet.wakings
    assert fleet.told("Cluster simulated is unreachable") == 1
    assert fleet.told("Cluster simulated is reachable again, after 2") == 1
    assert fleet.gauges["kstream.simulated.cluster.unreachable"][-1] == 0
    assert {fleet.gauges[f"kstream.simulated.{name}.blind_seconds"][-1] for name in names(12)} == {0}
    assert fleet.ended == {}


def test_a_failover_of_a_minute_wakes_nobody_and_is_no_event(fleet: Fleet) -> None:
    fleet.declare(*names(5))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = False
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert fleet.wakings == []
    assert not fleet.told("is unreachable")


def test_a_connection_that_the_triggerer_can_not_open_wakes_one_task(fleet: Fleet) -> None:
    """As without the Hadoop conf folder on that host: a retry does not help, and workers see the cluster."""
    fleet.declare(*names(5))

    def refuse() -> None:
        raise InvalidInput("/etc/hadoop/conf does not exist on this host")

    fleet.opening = refuse

    async def story() -> None:
        await asyncio.sleep(12 * MINUTE)

    fleet.live(story)
    assert len(fleet.wakings) == 1
    assert 5 * MINUTE < fleet.wakings[0].at < 6 * MINUTE
    assert "/etc/hadoop/conf does not exist" in fleet.wakings[0].why
    assert fleet.told("Cluster simulated is unreachable") == 1


def test_a_stream_whose_folder_is_gone_wakes_its_own_task(fleet: Fleet) -> None:
    fleet.declare(*names(3))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.hdfs.delete(StreamId("stream-1", CLUSTER.state_dir).folder, recursive=True)
        await asyncio.sleep(7 * MINUTE)

    fleet.live(story)
    assert fleet.woken() == ["stream-1"]
    assert 6 * MINUTE < fleet.wakings[0].at < 7 * MINUTE
    assert "its folder was deleted" in fleet.wakings[0].why
    assert fleet.told("stream-1 can't be seen, so its task looks") == 1


def test_streams_that_refuse_the_watcher_wake_their_own_tasks_one_after_the_other(fleet: Fleet) -> None:
    """A refusal is no answer that is missing: each task has rights of its own."""
    fleet.declare(*names(3))

    fleet.watchers_engine = Unreadable(fleet.hdfs, fleet.yarn, why=dict.fromkeys(names(3), DENIED))

    async def story() -> None:
        await asyncio.sleep(8 * MINUTE)

    fleet.live(story)
    assert sorted(fleet.woken()) == names(3)
    assert all(later.at - earlier.at >= STAGGER for earlier, later in pairwise(fleet.wakings))
    assert not fleet.told("is unreachable")
    assert fleet.ended == {}


def test_a_defect_in_one_look_blinds_no_other_stream(fleet: Fleet, unreadable: Why) -> None:
    fleet.declare(*names(3))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        unreadable["stream-1"] = ZeroDivisionError("a defect of ours")
        await asyncio.sleep(4 * MINUTE)
        assert fleet.gauges["kstream.simulated.stream-1.blind_seconds"][-1] > 3 * MINUTE
        assert fleet.gauges["kstream.simulated.stream-2.blind_seconds"][-1] == 0
        await asyncio.sleep(2 * MINUTE)

    fleet.live(story)
    assert fleet.woken() == ["stream-1"]
    assert "a defect of ours" in fleet.wakings[0].why


def test_a_restart_that_is_due_while_nobody_sees_wakes_that_streams_task(fleet: Fleet) -> None:
    """At its own time, though the cluster is away for less than anybody's patience; and again, ever less often."""
    fleet.declare("early")
    fleet.clock.ahead += 0.1 * ONE_WEEK
    fleet.declare(*names(5))
    fleet.clock.ahead += 0.65 * ONE_WEEK - 3 * MINUTE * (ONE_WEEK / ONE_WEEK.total_seconds())

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(3 * MINUTE)
        assert fleet.woken() == ["early"]
        assert 3 * MINUTE <= fleet.wakings[0].at <= 3.5 * MINUTE
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = False
        await asyncio.sleep(3 * MINUTE)

    fleet.live(story)
    assert set(fleet.woken()) == {"early"}
    assert [number for number, _ in fleet.generations("early")] == [1, 2]


def test_a_triggerer_that_was_restarted_keeps_the_time_of_the_restart(fleet: Fleet) -> None:
    """The worker's deferral carries it: the new triggerer has seen nothing itself."""
    fleet.declare("orders")
    fleet.clock.ahead += 0.75 * ONE_WEEK - 2 * MINUTE * (ONE_WEEK / ONE_WEEK.total_seconds())

    async def story() -> None:
        # Away as soon as the task has deferred, before the trigger's first look.
        await asyncio.sleep(1)
        fleet.yarn.away = True
        await asyncio.sleep(3 * MINUTE)

    fleet.live(story)
    assert fleet.woken() == ["orders"]
    assert 2 * MINUTE <= fleet.wakings[0].at < 3 * MINUTE
    assert "its restart is due" in fleet.wakings[0].why


@pytest.mark.parametrize("store_slow", [0.0, 61.0])
def test_a_blindness_that_is_over_is_none_after_the_triggerer_restarts(
    fleet: Fleet, unreadable: Why, store_slow: float
) -> None:
    """The trigger's row in Airflow's database is of the deferral: what was seen in the days since is not in it."""
    fleet.declare(*names(3))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        unreadable["stream-1"] = DENIED
        await asyncio.sleep(7 * MINUTE)
        unreadable.clear()
        assert fleet.woken() == ["stream-1"]
        await asyncio.sleep(30 * MINUTE)
        fleet.restart_triggerer()
        fleet.store_slow = store_slow
        unreadable["stream-1"] = DENIED
        await asyncio.sleep(4 * MINUTE)
        assert fleet.woken() == ["stream-1"]
        assert 0 < fleet.gauges["kstream.simulated.stream-1.blind_seconds"][-1] < 4 * MINUTE
        assert set(fleet.gauges["kstream.simulated.stream-1.events"]) == {0}
        fleet.store_slow = 0.0
        await asyncio.sleep(4 * MINUTE)

    fleet.live(story)
    assert fleet.woken() == ["stream-1"] * 2
    assert "nothing could be concluded for 3" in fleet.wakings[1].why


def test_a_triggerer_that_restarts_every_five_minutes_goes_on_waking_a_blind_stream(
    fleet: Fleet, unreadable: Why
) -> None:
    fleet.declare(*names(3))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        unreadable["stream-1"] = DENIED
        await asyncio.sleep(18 * MINUTE)
        assert len(fleet.wakings) == 2
        for _ in range(13):
            fleet.restart_triggerer()
            await asyncio.sleep(290)

    fleet.live(story)
    pauses = [after.at - before.at for before, after in pairwise(fleet.wakings[1:])]
    assert pauses == pytest.approx([15 * MINUTE] * 4, abs=2 * MINUTE)
    assert set(fleet.woken()) == {"stream-1"}


def test_a_store_that_can_not_be_read_delays_no_task(fleet: Fleet) -> None:
    fleet.store_fails = RuntimeError("the store is away")
    fleet.declare("orders")

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        asked = fleet.loop.time()
        set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "its source moves")
        await asyncio.sleep(MINUTE)
        assert fleet.wakings[0].at - asked < MINUTE / 2

    fleet.live(story)


def test_an_outage_wakes_no_fleet_whose_plans_passed_long_ago(fleet: Fleet) -> None:
    """That it is held was seen after the deferrals, by a triggerer that is gone. One task an outage looks, as ever."""
    fleet.declare(*names(12))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        for name in names(12):
            set_desired(fleet.run_of(name), DesiredState.HELD, "its source moves")
        await asyncio.sleep(3 * MINUTE)
        fleet.clock.ahead += timedelta(days=6)
        await asyncio.sleep(10 * MINUTE)
        fleet.restart_triggerer()
        fleet.yarn.away = True
        await asyncio.sleep(60 * MINUTE)
        fleet.yarn.away = False
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert 1 <= len(fleet.woken()) <= 5, "at most one in a quarter of an hour"
    assert {app.state for app in fleet.yarn.apps.values()} == {ApplicationState.RUNNING}


def test_a_woken_task_that_reaches_no_server_defers_again_at_once(fleet: Fleet) -> None:
    fleet.declare("orders")

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = True
        began = fleet.clock.ahead
        await asyncio.sleep(60 * MINUTE)
        # A worker's waits move the clock beside the loop's.
        assert (fleet.clock.ahead - began).total_seconds() < MINUTE * len(fleet.wakings)

    fleet.live(story)
    assert 3 <= len(fleet.wakings) <= 6
    assert fleet.gauges["kstream.simulated.orders.blind_seconds"][-1] > 50 * MINUTE, "a deferral does not begin it anew"
    assert fleet.ended == {}
    assert fleet.told("Cluster simulated is unreachable") == 1


def test_one_stream_whose_checkpoint_can_not_be_read_is_no_event_of_the_cluster(fleet: Fleet, unreadable: Why) -> None:
    fleet.declare(*names(3))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        unreadable["stream-1"] = Unavailable("the DataNode does not answer")
        await asyncio.sleep(9 * MINUTE)

    fleet.live(story)
    assert fleet.woken() == ["stream-1"]
    assert not fleet.told("is unreachable")


def test_a_stream_that_is_looked_at_once_an_hour_is_not_blind_for_hours(fleet: Fleet) -> None:
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(hours=1)))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(70 * MINUTE)

    fleet.live(story)
    assert fleet.woken() == ["orders"]
    assert 65 * MINUTE <= fleet.wakings[0].at <= 67 * MINUTE
