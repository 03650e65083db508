"""What watched streams leave in Airflow's asset state store, and that no look ever waits for it."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from airflow_kstream.assets import asset_uri, subject_of
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import ReachedPositions
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.policy.states.due import DETAIL, MOST, VERDICT, Kind, late_after, rewritten_after, size
from airflow_kstream.states import recorder
from airflow_kstream.triggers.awaiting import fired
from airflow_kstream.triggers.memory import Memory
from airflow_kstream.triggers.streams import StreamTrigger
from tests.simulated.fleet import CONNECTION, Fleet, carried
from tests.simulated.servers import ONE_WEEK

MINUTE = 60.0
CALM = WatchPolicy(every=timedelta(minutes=1))


def test_positions_and_errors_that_a_trigger_hands_on_can_be_stored() -> None:
    odd = ReachedPositions(1, {"/data/orders": Position("\udc80", 10**30, 0)})
    assert carried(Memory(reached=odd).to_json())["reached"]["positions"] == {"/data/orders": [r"\udc80", 2**63 - 1, 0]}
    assert carried(fired({"recalled": odd.to_json()}).payload)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The reports that tasks pushed, by DAG, and each trigger as one of a deferred task."""
    pushed: dict[str, Any] = {}

    class Instance:
        dag_id, run_id, task_id, map_index = "stream-simulated-orders", "manual", "keep", -1

    async def get(by: Any) -> Any:
        return pushed.get(by.dag)

    async def put(by: Any, report: Any) -> None:
        pushed[by.dag] = report

    for of, name, part in (
        (recorder, "get_report", get),
        (recorder, "put_report", put),
        (StreamTrigger, "task_instance", Instance()),
    ):
        # Airflow's supervisor would answer for XCom, and its triggerer names the task: neither runs here.
        monkeypatch.setattr(of, name, part)
    return pushed


def row(fleet: Fleet, stream: str, kind: Kind = Kind.VERDICT) -> Any:
    return fleet.store.get((asset_uri(CONNECTION, stream), kind.value))


def state(fleet: Fleet, stream: str) -> StreamState:
    read = StreamState.from_json(row(fleet, stream))
    assert read is not None, f"nothing is stored of {stream}"
    return read


def age(fleet: Fleet, stream: str) -> float:
    return (fleet.clock.now() - state(fleet, stream).seen).total_seconds()


def not_named(*of: object) -> AirflowRuntimeError:
    return AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": 404}))


def test_a_healthy_streams_state_is_stored_and_stays_current(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        fleet.engine.complete_epoch(fleet.specs["orders"])
        await asyncio.sleep(3 * MINUTE)
        assert age(fleet, "orders") <= 2 * MINUTE

    fleet.live(story)
    seen = state(fleet, "orders")
    assert (seen.state, seen.generation, seen.application) == ("running", 1, "application_1_0001")
    assert size(row(fleet, "orders")) <= VERDICT
    assert row(fleet, "orders", Kind.DETAIL)["detail"]["generation"] == 1
    assert size(row(fleet, "orders", Kind.DETAIL)) <= DETAIL


def test_an_unreachable_cluster_leaves_what_was_known(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await asyncio.sleep(3 * MINUTE)
        fleet.yarn.away = True
        await asyncio.sleep(3 * MINUTE)

    fleet.live(story)
    seen = state(fleet, "orders")
    assert (seen.state, seen.generation) == ("unknown", 1)
    assert "connection refused" in seen.verdict


def test_what_was_deleted_with_an_orphaned_asset_is_written_again(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await asyncio.sleep(5 * MINUTE)
        asked: list[str] = []

        async def refuse(key: str) -> None:
            asked.append(key)
            raise not_named()

        writes, fleet.at_write = fleet.at_write, refuse
        fleet.store.clear()
        await asyncio.sleep(30 * MINUTE)
        assert 0 < len(asked) <= 4, "a 404 is remembered"
        fleet.at_write = writes
        await asyncio.sleep(12 * MINUTE)
        assert row(fleet, "orders")
        assert row(fleet, "orders", Kind.DETAIL)

    fleet.live(story)
    assert not fleet.told("can't be stored"), "a stream that no DAG names is not a failure"


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_no_look_waits_for_a_store_that_fails(fleet: Fleet, how: str) -> None:
    """The stream is restarted in time while its state can't be written, and that is written afterwards."""
    fleet.declare("orders", watch=CALM)

    async def fail(key: str) -> None:
        if how == "hangs":
            await asyncio.Event().wait()
        raise OSError("the database is away")

    writes, fleet.at_write = fleet.at_write, fail

    async def story() -> None:
        await asyncio.sleep(5 * MINUTE)
        fleet.clock.ahead += 0.8 * ONE_WEEK
        fleet.engine.complete_epoch(fleet.specs["orders"])
        await asyncio.sleep(10 * MINUTE)
        fleet.at_write = writes
        await asyncio.sleep(10 * MINUTE)
        assert age(fleet, "orders") <= 3 * MINUTE

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert fleet.told("What was seen of streams can't be stored") == 1, "one line for each kind of failure"


def test_rows_that_the_store_always_refuses_delay_no_other(fleet: Fleet) -> None:
    """Else nobody would know for the rest of the fleet that it is looked at, and all of it would need a hand."""
    names = [f"s{number}" for number in range(6)]
    fleet.declare(*names, watch=CALM)
    fleet.store_refuses = {asset_uri(CONNECTION, name) for name in names[:3]}

    async def story() -> None:
        await asyncio.sleep(60 * MINUTE)
        for name in names[3:]:
            assert age(fleet, name) <= late_after(len(names)).total_seconds()

    fleet.live(story)


def test_rows_that_the_store_refused_for_a_while_have_their_turn_again(fleet: Fleet) -> None:
    """Those that are refused share one place in a second, too few for a large fleet."""
    names = [f"s{number}" for number in range(60)]
    fleet.declare(*names, watch=CALM)
    fleet.store_refuses = {asset_uri(CONNECTION, name) for name in names}

    async def story() -> None:
        await asyncio.sleep(20 * MINUTE)
        fleet.store_refuses = set()
        await asyncio.sleep(40 * MINUTE)
        assert max(age(fleet, name) for name in names) <= 1.5 * rewritten_after(len(names))

    fleet.live(story)


def test_a_fleet_is_current_again_after_the_triggerer_died(fleet: Fleet) -> None:
    names = [f"stream-{number}" for number in range(12)]
    fleet.declare(*names, watch=CALM)

    async def story() -> None:
        await asyncio.sleep(2 * MINUTE)
        fleet.restart_triggerer()
        restarted = fleet.clock.now()
        await asyncio.sleep(1.5 * MINUTE)
        assert all(state(fleet, name).seen > restarted for name in names)

    fleet.live(story)
    assert {subject_of(uri)[1] for uri, _ in fleet.store} >= set(names)


def restore_the_first_batch(fleet: Fleet) -> None:
    """Let the checkpoint be the copy of an earlier day."""
    epochs = "/data/orders/epochs.json"
    fleet.hdfs.files[epochs] = (json.dumps(json.loads(fleet.hdfs.read(epochs))[:1]), fleet.hdfs.now())


def preempt(fleet: Fleet) -> None:
    for _, app in fleet.generations("orders"):
        fleet.yarn.end(app.id, ApplicationState.KILLED, "Container preempted by scheduler")


async def some_hours(fleet: Fleet) -> None:
    for _ in range(3):
        await asyncio.sleep(30 * MINUTE)
        fleet.engine.complete_epoch(fleet.specs["orders"])
    await asyncio.sleep(40 * MINUTE)


@pytest.mark.parametrize("minutes", [(0,), (40, 0)])
@pytest.mark.parametrize("seconds", [0, 50])
def test_what_only_a_killed_triggerer_saw_is_not_lost(fleet: Fleet, seconds: float, minutes: tuple[float, ...]) -> None:
    """Else its successor would take the copy for the job's own, and its batches would be written twice.

    A store that takes some seconds answers after that successor's first look. `minutes` are those that each triggerer
    lives before the job dies.
    """
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(seconds=20)))

    async def slowly(key: str) -> None:
        # Of edited policies it tells at once: a wait for those would be one for this row, too.
        await asyncio.sleep(seconds if key == Kind.DETAIL.value else 0)

    fleet.at_read = slowly

    async def story() -> None:
        await some_hours(fleet)
        for lived in minutes:
            fleet.restart_triggerer()
            restore_the_first_batch(fleet)
            await asyncio.sleep(lived * MINUTE)
        preempt(fleet)
        await asyncio.sleep(60 * MINUTE)

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1]
    assert fleet.told("older than it was: batch 0 is planned")


def test_a_task_that_is_cleared_knows_what_the_triggerer_saw(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await some_hours(fleet)
        restore_the_first_batch(fleet)
        preempt(fleet)
        fleet.clear("orders")
        await asyncio.sleep(60 * MINUTE)

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1]
    assert fleet.told("older than it was: batch 0 is planned")


def forged_rows(fleet: Fleet) -> dict[str, object]:
    """Return what somebody who may edit assets can write where a triggerer keeps what it saw."""
    now, claim = fleet.clock.now(), "nonceorders"

    def detail(**reached: object) -> dict[str, object]:
        known = {"generation": 1, "claim": claim, "positions": {"/data/orders": [None, -1, -1]}}
        return {"version": 1, "seen": (now + timedelta(days=9999)).isoformat(), "detail": {"reached": known | reached}}

    return {
        "no mapping": "rubbish",
        "no positions": detail(positions=["x"]),
        "no number": detail(generation=float("inf")),
        "a higher generation": detail(generation=99, positions={"/data/orders": ["q", 10**9, 10**9]}),
        "another claim": detail(claim="another", positions={"/data/orders": ["q", 10**9, 10**9]}),
        "lower positions": detail(),
        "no claim": detail(claim="", positions={"/data/orders": [None, -1, -1]}),
        "other checkpoints": detail(positions={"/data/sales": ["q", 10**9, 10**9]}),
        "huge": detail(positions={f"/data/{number}": ["q", 1, 1] for number in range(20_000)}),
    }


@pytest.mark.parametrize("kind", [Kind.VERDICT, Kind.DETAIL])
@pytest.mark.parametrize(
    "what",
    [
        "no mapping",
        "no positions",
        "no number",
        "a higher generation",
        "another claim",
        "lower positions",
        "no claim",
        "other checkpoints",
        "huge",
    ],
)
def test_a_row_that_somebody_wrote_neither_wakes_nor_delays_a_task(fleet: Fleet, what: str, kind: Kind) -> None:
    """Nor hides it what was seen: a checkpoint that is older than it was keeps the job from its start."""
    fleet.declare("orders", "sales", watch=CALM)

    async def story() -> None:
        await some_hours(fleet)
        fleet.store[asset_uri(CONNECTION, "orders"), kind.value] = forged_rows(fleet)[what]
        fleet.restart_triggerer()
        await asyncio.sleep(5 * MINUTE)
        assert fleet.wakings == []
        preempt(fleet)
        await asyncio.sleep(10 * MINUTE)
        assert [number for number, _ in fleet.generations("orders")] == [1, 2]
        fleet.engine.complete_epoch(fleet.specs["orders"])
        fleet.engine.complete_epoch(fleet.specs["orders"])
        await asyncio.sleep(5 * MINUTE)
        fleet.store[asset_uri(CONNECTION, "orders"), kind.value] = forged_rows(fleet)[what]
        restore_the_first_batch(fleet)
        preempt(fleet)
        await asyncio.sleep(60 * MINUTE)

    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]
    assert fleet.told("older than it was: batch 0 is planned")
    assert max(len(text) for text, _ in fleet.hdfs.files.values()) < 50_000, "no such row is noted in the state_dir"


def test_a_deferred_tasks_report_follows_what_is_seen(fleet: Fleet, reports: dict[str, Any]) -> None:
    reports["stream-simulated-orders"] = {"stream": "orders", "generation": 1, "phase": "starting", "done": ["submit"]}
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await asyncio.sleep(5 * MINUTE)
        report = reports["stream-simulated-orders"]
        assert (report["phase"], report["done"]) == ("running", ["submit"])
        assert datetime.fromisoformat(report["seen"]) > fleet.clock.now() - timedelta(minutes=6)

    fleet.live(story)
    assert state(fleet, "orders").by.dag == "stream-simulated-orders"


def test_a_task_stores_what_it_did_before_any_trigger_looks(fleet: Fleet) -> None:
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await asyncio.sleep(1.0)
        assert state(fleet, "orders").generation == 1
        [who, *_] = row(fleet, "orders", Kind.REPORT)["submission"]["notes"]
        assert who.endswith("; NONCE stands for the claim's own"), "the number of the next generation is known"

    fleet.live(story)


def test_a_task_whose_asset_has_no_dag_is_not_disturbed(fleet: Fleet) -> None:
    def refuse(uri: str) -> None:
        raise not_named()

    fleet.at_tasks_write = refuse
    fleet.declare("orders", watch=CALM)

    async def story() -> None:
        await asyncio.sleep(1.0)

    fleet.live(story)
    assert fleet.ended == {}
    assert not fleet.told("can't be stored")


def test_the_budget_of_one_process_is_a_fraction_of_what_airflow_can_write() -> None:
    assert MOST * 0.05 <= 0.25, "seconds of each second, at 50 ms a row"
