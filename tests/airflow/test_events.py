"""Events of watched streams as a notifier gets them: each begin once, each end once, whatever restarts in between."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied, InvalidInput, Unavailable
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.checkpoint_owner import Owner
from airflow_kstream.model.streams.event import EventKind, Ledger, Trouble
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import OnChange, StreamSpec
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.policy.events.bundles import compare
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers.events import StreamEventTrigger
from airflow_kstream.triggers.notifying import ClusterTeller, Teller, told_subject
from tests.airflow import notifiers
from tests.airflow.notifiers import HERE
from tests.simulated.engine import FakeEngine
from tests.simulated.fleet import Fleet
from tests.simulated.servers import CLUSTER, ONE_WEEK

MINUTE, HOUR = 60.0, 3600.0
CALM = WatchPolicy(every=timedelta(minutes=5))
BY_BOB = "Application application_1_0001 was killed by user bob at 10.0.0.7"

pytestmark = pytest.mark.usefixtures("recording")


def names(count: int) -> list[str]:
    return [f"stream-{number}" for number in range(count)]


def told(fleet: Fleet, name: str = "default") -> list[str]:
    """Return the beginnings of the messages, up to the cause."""
    return [text.split(": ", 2)[1].split(", after ")[0] for notifier, text in notifiers.told if notifier == name]


def refuse() -> None:
    raise InvalidInput("the queue is gone")


def nothing() -> None:
    pass


async def commit(fleet: Fleet, hours: float) -> None:
    """Let all live streams commit every few minutes."""
    for _ in range(int(hours * 12)):
        await asyncio.sleep(5 * MINUTE)
        for name, spec in fleet.specs.items():
            if any(app.alive for _, app in fleet.generations(name)):
                fleet.engine.complete_epoch(spec)


def test_a_stream_that_is_well_tells_nothing(fleet: Fleet) -> None:
    """Also over a failover of a minute, a restart of the triggerer, and a planned restart."""
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(minutes=1)))
    fleet.clock.ahead += 0.6 * ONE_WEEK
    fleet.engine.complete_epoch(fleet.specs["orders"])

    async def story() -> None:
        await commit(fleet, 1)
        fleet.yarn.away = True
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = False
        fleet.restart_triggerer()
        fleet.clock.ahead += 0.14 * ONE_WEEK
        fleet.engine.complete_epoch(fleet.specs["orders"])
        await commit(fleet, 6)

    fleet.live(story)
    assert len(fleet.generations("orders")) == 2
    assert notifiers.told == []
    assert fleet.store_writes == 0
    assert fleet.ended == {}


def test_a_cluster_that_is_away_for_an_hour_is_one_event_of_all_streams(fleet: Fleet) -> None:
    fleet.declare(*names(12), watch=CALM)

    async def story() -> None:
        await asyncio.sleep(5 * MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(HOUR)
        assert told(fleet) == ["the cluster is unreachable, so none of its streams is seen"]
        fleet.yarn.away = False
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert told(fleet)[1:] == ["the cluster is reachable"]
    assert fleet.store_writes == 2, "one row, of the cluster"


@pytest.mark.parametrize("restarts", [0, 1, 3])
def test_an_event_outlives_every_restart_of_the_triggerer(fleet: Fleet, restarts: int) -> None:
    """Of a stream and of the cluster: neither begins again, and each ends once."""
    fleet.declare("orders")
    wrong = {"orders": False}

    class Refusing(FakeEngine):
        def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
            if wrong["orders"]:
                raise Denied("Permission denied: user=watcher")
            return super().progress(session, spec, newest)

    fleet.watchers_engine = Refusing(fleet.hdfs, fleet.yarn)

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        wrong["orders"] = True
        await asyncio.sleep(10 * MINUTE)
        assert told(fleet) == ["nothing can be concluded about it"]
        for _ in range(restarts):
            fleet.restart_triggerer()
            await asyncio.sleep(10 * MINUTE)
        wrong["orders"] = False
        fleet.yarn.away = True
        await asyncio.sleep(10 * MINUTE)
        for _ in range(restarts):
            fleet.restart_triggerer()
            await asyncio.sleep(10 * MINUTE)
        assert told(fleet)[1:] == ["the cluster is unreachable, so none of its streams is seen"]
        fleet.restart_triggerer()
        fleet.yarn.away = False
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert sorted(told(fleet)[2:]) == ["it is seen again", "the cluster is reachable"]


def test_a_blocked_restart_is_one_event_and_another_one_when_it_is_overdue(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)
    fleet.clock.ahead += 0.749 * ONE_WEEK
    fleet.engine.at_preflight = refuse
    begins = ["its restart is blocked", "its planned restart is overdue"]

    async def story() -> None:
        await asyncio.sleep(2 * HOUR)
        assert told(fleet) == begins[:1]
        assert "the queue is gone" in notifiers.told[0][1]
        fleet.restart_triggerer()
        await asyncio.sleep(5 * HOUR)
        assert told(fleet) == begins
        fleet.engine.at_preflight = nothing
        await asyncio.sleep(20 * MINUTE)

    fleet.live(story)
    assert sorted(told(fleet)[2:]) == ["its restart is blocked no longer", "its restart is overdue no longer"]
    assert fleet.ended == {}
    for kind in ("restart_blocked", "restart_overdue"):
        values = fleet.gauges[f"kstream.simulated.orders.event.{kind}"]
        assert values == sorted(values, reverse=True), "it is sent from its begin to its end"
        assert (values[0], values[-1], values.count(0)) == (1, 0, 1)
    assert max(fleet.gauges["kstream.simulated.orders.events"]) == 2
    assert fleet.gauges["kstream.simulated.orders.events"][-1] == 0


def test_an_alert_carries_what_the_doctor_expects_of_its_stream(fleet: Fleet) -> None:
    fleet.foretold = {"orders": ("its second attempt will fail from 2026-05-14 03:12 UTC on (second-attempt)",)}
    fleet.declare("orders", watch=CALM)
    fleet.clock.ahead += 0.749 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(2 * HOUR)

    fleet.live(story)
    ((_, text),) = notifiers.told
    assert "orders: its restart is blocked: " in text
    assert text.endswith("; foretold: its second attempt will fail from 2026-05-14 03:12 UTC on (second-attempt)")


def test_a_queue_that_is_gone_is_one_message_of_all_its_streams(fleet: Fleet) -> None:
    fleet.declare(*names(12), watch=CALM)
    fleet.clock.ahead += 0.8 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert 1 <= told(fleet).count("its restart is blocked") <= 6
    assert len(notifiers.told) <= 12


def test_a_persons_kill_waits_until_a_person_starts_the_stream(fleet: Fleet) -> None:
    """The task failed once, as Airflow shows; its retry begins without a memory and finds what was told."""
    fleet.declare("orders", watch=CALM)
    fleet.yarn.end(next(iter(fleet.yarn.apps)), ApplicationState.KILLED, BY_BOB)
    assert Reconciler(fleet.run_of("orders"), tell=lambda line: None).run(Mode.WATCH).ended

    async def story() -> None:
        await asyncio.sleep(24 * HOUR)
        fleet.restart_triggerer()
        await asyncio.sleep(HOUR)
        assert told(fleet) == ["a person killed it, and it waits for one"]
        set_desired(fleet.run_of("orders"), DesiredState.RUNNING, "bob is sorry")
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert told(fleet)[1] == "it waits for a person no longer"


def test_a_declaration_has_a_notifier_of_its_own(fleet: Fleet) -> None:
    own = NotifyPolicy(f"{HERE}.Recording", {"name": "team", "text": "{{ event.stream }} {{ event.kind }}"})
    fleet.declare("orders", watch=CALM, notify=own)
    fleet.declare("clicks", watch=CALM)
    fleet.clock.ahead += 0.8 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert ("team", "orders restart_blocked") in notifiers.told
    assert {text.split(":")[0] for name, text in notifiers.told if name == "default"} == {"simulated/clicks"}


def test_a_message_says_what_people_call_the_stream_and_what_they_type(fleet: Fleet) -> None:
    own = NotifyPolicy(f"{HERE}.Recording", {"name": "team", "text": "{{ event.stream }}, {{ event.app_name }}"})
    fleet.declare("orders_v2", watch=CALM, notify=own, app_name="Orders.Stream v2")
    fleet.declare("clicks", watch=CALM, app_name="Clicks")
    fleet.clock.ahead += 0.8 * ONE_WEEK
    fleet.engine.at_preflight = refuse
    passed: list[str] = []

    async def pass_on() -> None:
        async for event in cast("Any", StreamEventTrigger("simulated", "orders_v2").run()):
            passed.append(event.payload["words"])  # noqa: PERF401  it never ends

    async def story() -> None:
        watcher = asyncio.create_task(pass_on())
        await asyncio.sleep(HOUR)
        watcher.cancel()

    fleet.live(story)
    assert ("team", "orders_v2, Orders.Stream v2") in notifiers.told
    said = {text.split(":")[0] for name, text in notifiers.told if name == "default"}
    assert said == {"simulated/Clicks (clicks)"}
    assert passed
    assert {words.split(":")[0] for words in passed} == {"simulated/Orders.Stream v2 (orders_v2)"}


def test_a_refused_declaration_keeps_its_streams_notifier(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM, notify=NotifyPolicy(f"{HERE}.Recording", {"name": "team"}))
    fleet.refused.add("orders")
    fleet.clock.ahead += 0.749 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(2 * HOUR)

    fleet.live(story)
    assert told(fleet, "team") == ["its restart is blocked"]
    assert told(fleet) == []


def test_what_falls_into_a_freeze_is_one_message(fleet: Fleet) -> None:
    fleet.declare(*names(6), watch=CALM)
    fleet.clock.ahead += 0.75 * ONE_WEEK - timedelta(minutes=20)

    async def story() -> None:
        FreezeStore(fleet.session).freeze(timedelta(hours=1), "a new NameNode")
        await asyncio.sleep(30 * MINUTE)
        fleet.restart_triggerer()
        await commit(fleet, 1)

    fleet.live(story)
    assert told(fleet)[0] == "a freeze keeps it from its restart"
    assert "and waits for the end of the freeze" in notifiers.told[0][1]
    assert told(fleet).count("a freeze keeps it from its restart") <= 2
    assert set(told(fleet)) == {"a freeze keeps it from its restart", "no freeze keeps it from its restart"}
    assert {len(fleet.generations(name)) for name in names(6)} == {2}


def test_a_doubt_of_the_task_lasts_until_a_successor_follows(fleet: Fleet) -> None:
    """The watcher may not read who owns it, and sees a stream that runs."""
    fleet.declare("orders", watch=CALM)
    lock = CheckpointLock(fleet.session.hdfs, "/data/orders")
    orders, sales = (Owner(name, CLUSTER.state_dir, CLUSTER.default_fs) for name in ("orders", "sales"))
    lock.give((), sales)

    async def story() -> None:
        await asyncio.sleep(HOUR)
        assert told(fleet) == ["its restart is blocked"]
        assert "/data/orders belongs to stream sales" in notifiers.told[0][1]
        fleet.restart_triggerer()
        await asyncio.sleep(HOUR)
        assert len(notifiers.told) == 1
        lock.give((1,), orders)
        request_restart(fleet.run_of("orders"), "sales is gone")
        await commit(fleet, 1)

    fleet.live(story)
    assert told(fleet)[1:] == ["its restart is blocked no longer"]
    assert len(fleet.generations("orders")) == 2


def test_a_stream_that_is_declared_twice_is_an_event(fleet: Fleet) -> None:
    """Only the task has the declaration, so the watcher sees no restart that is due."""
    fleet.declare("orders", watch=CALM, on_change=OnChange.RESTART)
    blue, green = fleet.specs["orders"], replace(fleet.specs["orders"], arguments=("--other",))
    for spec in (green, blue):
        Reconciler(replace(fleet.run_of("orders"), spec=spec), tell=lambda line: None).run(Mode.WATCH)
    fleet.specs["orders"] = green

    async def story() -> None:
        await commit(fleet, 1)
        fleet.restart_triggerer()
        await commit(fleet, 1)

    fleet.live(story)
    assert told(fleet) == ["its restart is blocked"]
    assert "this stream seems to be declared twice" in notifiers.told[0][1]


@pytest.mark.parametrize("wrong", ["hangs", "raises", "is gone", "store"])
def test_no_notifier_and_no_store_delays_a_watch(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """The restart that is due while the events of others can't be told happens at its time."""
    fleet.notifiers_hang = wrong == "hangs"
    notifier = {"raises": "Raising", "is gone": "Nobody"}.get(wrong, "Recording")
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{HERE}.{notifier}")
    if wrong == "store":
        fleet.store_fails = Unavailable("404: no DAG names this asset")
    fleet.declare(*names(3), watch=CALM)
    fleet.clock.ahead += 0.749 * ONE_WEEK

    class RefusesAllButOne(FakeEngine):
        def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
            if spec.name != "stream-2":
                raise InvalidInput("the queue is gone")

    fleet.engine = RefusesAllButOne(fleet.hdfs, fleet.yarn)

    async def story() -> None:
        await asyncio.sleep(3 * HOUR)

    fleet.live(story)
    assert len(fleet.generations("stream-2")) == 2
    assert fleet.ended == {}
    assert fleet.told("A notification is dropped") >= (0 if wrong == "store" else 1)
    assert fleet.told("What was told can't be ") == (1 if wrong == "store" else 0)


def test_a_triggerer_that_is_killed_before_the_notifier_returned_tells_again(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.notifiers_hang = True

    async def story() -> None:
        fleet.yarn.away = True
        await asyncio.sleep(6 * MINUTE)
        fleet.notifiers_hang = False
        fleet.restart_triggerer()
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert told(fleet) == ["the cluster is unreachable, so none of its streams is seen"]


def test_a_stream_without_a_notifier_tells_nobody_and_is_watched(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__KSTREAM__NOTIFIER")
    fleet.declare("orders")

    async def story() -> None:
        fleet.yarn.away = True
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert notifiers.told == []
    assert fleet.store[("kstream://simulated/", "told")]["changes"] == 1, "for those who watch the asset"


STALLED = Trouble(EventKind.STALLED, "no commit")
AWAY = Trouble(EventKind.ENVIRONMENT, "they follow by themselves", "HDFS did not answer")


def noted(fleet: Fleet, trouble: Trouble, seconds: float, stream: str = "") -> None:
    """Let an earlier process have told of the trouble, which nobody can read for so many seconds."""
    ledger, _ = compare(Ledger(), [trouble], {trouble.kind}, datetime(2026, 3, 1, tzinfo=UTC), "simulated", stream)
    fleet.session.told.note(told_subject(("simulated", stream)), ledger)

    def answer(request: str, path: str) -> None:
        if "/told." in path and fleet.loop.time() < seconds:
            raise Unavailable("connection refused", tried=f"{request} {path}")

    fleet.hdfs.at_request = answer


def test_a_watcher_that_does_not_know_yet_what_others_told_tells_nothing(fleet: Fleet) -> None:
    noted(fleet, STALLED, 40, "orders")

    async def story() -> None:
        async with Teller("simulated", "orders") as teller:
            for _ in range(10):
                teller.saw([STALLED], {EventKind.STALLED})
                await asyncio.sleep(15)
            assert told(fleet) == []
            teller.saw([], {EventKind.STALLED})
            await asyncio.sleep(2 * MINUTE)

    fleet.live(story)
    assert told(fleet) == ["it is stalled no longer"]


def test_a_process_that_has_just_begun_ends_no_event_of_the_environment(fleet: Fleet) -> None:
    """It has not looked at the streams that ended of it yet."""
    noted(fleet, AWAY, 1)

    async def story() -> None:
        teller = ClusterTeller("simulated")
        for _ in range(9):
            teller.looked("", (), concluded=True)
            await asyncio.sleep(30)
        assert told(fleet) == []
        for _ in range(6):
            teller.looked("", (), concluded=True)
            await asyncio.sleep(30)

    fleet.live(story)
    assert len(told(fleet)) == 1
