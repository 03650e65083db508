"""Deferred tasks outlive an upgrade: what a release wrote into Airflow's database is read by today's code.

`frozen/triggers_of_<release>.json` has one row for each trigger of a release: its class and fields, and the method that
Airflow calls on the worker, with what it hands over. A release adds a file, and changes none.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from airflow.models.trigger import Trigger
from airflow.sdk import BaseOperator
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import TaskDeferralTimeout, TaskDeferred

from airflow_kstream.model.clusters.hdfs_health import SafeMode
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.declarations import PolicyEdit
from airflow_kstream.model.streams.event import EventKind, LastingEvent, Ledger
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import ReachedPositions
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.operators.retries import RETRY_IF_IT_HELPS
from airflow_kstream.operators.streams import ClaimedStreamOperator, SparkStreamOperator
from airflow_kstream.policy.streams.restart.blocked import BlockedRestart
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.sensors.awaiting import AwaitingSensor
from airflow_kstream.sensors.leases import HdfsOpenFileSensor
from airflow_kstream.sensors.progress import StreamProgressSensor
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor
from airflow_kstream.sensors.tokens import DelegationTokenExpirySensor
from airflow_kstream.triggers.events import StreamEventTrigger
from airflow_kstream.triggers.leases import OpenFileEventTrigger
from airflow_kstream.triggers.memory import Blindness, DeclarationMemory, Memory, StallMemory, SuccessorDoubt
from airflow_kstream.triggers.streams import StreamTrigger
from tests.simulated.fleet import CONNECTION, START, Fleet, context
from tests.simulated.life import SPEC
from tests.simulated.servers import ONE_WEEK

FILES = sorted((Path(__file__).parent / "frozen").glob("triggers_of_*.json"))
ROWS = {f"{file.stem}-{row['task']}": row for file in FILES for row in json.loads(file.read_text())}
_THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
# Every field is set.
MEMORY = Memory(
    plan=_THEN,
    blindness=Blindness(since=_THEN, wakings=2),
    word=_THEN,
    stopped=True,
    blocked=BlockedRestart(_THEN, 3, _THEN, _THEN),
    reached=ReachedPositions(7, {"/data/orders": Position("a-query", 41, 40)}),
    ledger=Ledger({(EventKind.BLOCKED, ""): LastingEvent(EventKind.BLOCKED, _THEN, "the queue is gone")}, changes=5),
    successor=SuccessorDoubt(doubt="its checkpoint belongs to another stream", doubted=7),
    stalls=StallMemory(
        stall=Stall(7, "a-nonce", "/data/orders", 41, timedelta(minutes=10), timedelta(minutes=13)),
        examine_at=_THEN,
        examined=Stall(7, "a-nonce", "/data/orders", 40, timedelta(minutes=10), timedelta(hours=13)),
    ),
    declaration=DeclarationMemory(
        declared=START, edit=PolicyEdit({"restart": {"max_age": "86400s"}}, _THEN, ("0a1b2c3d",))
    ),
    safe_mode=SafeMode(_THEN, _THEN),
)
# Each deferral says when its task read the declaration.
NOTHING_KNOWN = Memory(declaration=DeclarationMemory(declared=START))


def watched(operator: SparkStreamOperator, memory: Memory) -> Callable[[], None]:
    spec = StreamSpec.from_mapping(SPEC.to_mapping() | {"name": "orders"})
    return lambda: operator._watch(spec, Mode.WATCH, memory)


def deferrals() -> dict[str, tuple[BaseOperator, Callable[[], None]]]:
    """Return how each task of today defers, by a name."""
    stream = SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=SPEC)
    claimed = ClaimedStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, name="orders", refusal="no YAML")
    files = HdfsOpenFileSensor(task_id="wait", cluster_conn_id=CONNECTION, path="/data", condition={"until": "none"})
    ticket = KerberosTicketExpirySensor(task_id="wait", cluster_conn_id=CONNECTION, cache="/var/lib/airflow/w.ccache")
    token = DelegationTokenExpirySensor(task_id="wait", cluster_conn_id=CONNECTION, stream="orders")
    moment = "2026-03-01 06:00:00+00:00"
    progress = StreamProgressSensor(
        task_id="wait", cluster_conn_id=CONNECTION, stream="orders", moment=moment, quiet_after="30m"
    )
    sensors: dict[str, AwaitingSensor] = {
        "open files": files,
        "ticket": ticket,
        "token": token,
        "progress": progress,
    }
    return {
        "stream": (stream, watched(stream, MEMORY)),
        "stream, nothing known": (stream, watched(stream, Memory())),
        "claimed stream": (claimed, watched(claimed, MEMORY)),
        **{name: (sensor, sensor._wait) for name, sensor in sensors.items()},
    }


def row_of(task: str, defer: Callable[[], None]) -> dict[str, Any]:
    """Return what Airflow's database keeps of a deferral."""
    with pytest.raises(TaskDeferred) as raised:
        defer()
    name, kwargs = raised.value.trigger.serialize()
    resumed = {"method": raised.value.method_name, "with": raised.value.kwargs or {}}
    plain: dict[str, Any] = json.loads(json.dumps({"task": task, "trigger": name, "fields": kwargs, **resumed}))
    return plain


def rows_of_today() -> list[dict[str, Any]]:
    watchers = {
        "files of an asset": OpenFileEventTrigger("simulated", "/data", patterns=["*.tmp"]),
        "events of an asset": StreamEventTrigger("simulated", "orders"),
    }
    serialized = {name: trigger.serialize() for name, trigger in watchers.items()}
    return [
        *(row_of(task, defer) for task, (_, defer) in deferrals().items()),
        *(
            {"task": name, "trigger": kind, "fields": fields, "method": None, "with": {}}
            for name, (kind, fields) in serialized.items()
        ),
    ]


@pytest.mark.usefixtures("fleet")
def test_the_newest_file_has_what_is_written_today(tmp_path: Path) -> None:
    """Before a release, a change belongs into its file; after it, into a new one, which this test then reads."""
    today = tmp_path / "triggers_of_today.json"
    today.write_text(json.dumps(rows_of_today(), indent=1) + "\n")
    assert today.read_text() == FILES[-1].read_text(), f"copy {today}"


def rows(holds: Callable[[dict[str, Any]], object] = lambda row: True) -> pytest.MarkDecorator:
    """Run a test for each frozen row of which this holds."""
    return pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items() if holds(row)])


def _class_of(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return getattr(import_module(module), kind)


@rows()
def test_a_trigger_of_a_release_is_made_again_by_todays_code(row: dict[str, Any]) -> None:
    trigger = _class_of(row["trigger"])(**row["fields"])
    name, fields = trigger.serialize()
    assert name == row["trigger"]
    assert {field: fields[field] for field in row["fields"]} == row["fields"]
    # As Airflow's database has it.
    stored = Trigger.from_object(trigger)
    assert (stored.classpath, stored.kwargs) == (name, fields)


@pytest.mark.usefixtures("fleet")
@rows(lambda row: row["method"])
def test_the_worker_has_the_method_that_a_release_wants_called(row: dict[str, Any]) -> None:
    operator, _ = deferrals()[row["task"]]
    inspect.signature(getattr(operator, row["method"])).bind(context(), {}, **row["with"])


@rows(lambda row: row["fields"].get("memory"))
def test_what_a_release_remembers_of_a_stream_is_not_forgotten(row: dict[str, Any]) -> None:
    expected = NOTHING_KNOWN if "nothing" in row["task"] else MEMORY
    assert Memory.from_json(row["fields"]["memory"]) == expected


@rows(lambda row: row["trigger"].endswith("StreamTrigger"))
def test_a_task_that_a_release_deferred_restarts_its_stream_in_time(fleet: Fleet, row: dict[str, Any]) -> None:
    fleet.declare("orders")
    fleet.clock.ahead += 0.8 * ONE_WEEK
    # The circumstances of the frozen deferral are not those of this fleet.
    fields = row["fields"] | {"memory": None}
    operator = SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=fleet.specs["orders"])

    async def story() -> None:
        async for event in StreamTrigger(**fields).run():
            with pytest.raises(TaskDeferred):
                getattr(operator, row["method"])(context(), json.loads(json.dumps(event.payload)), **row["with"])
            break

    # No other task watches it.
    fleet.specs.clear()
    fleet.live(story)
    assert [number for number, _ in fleet.generations("orders")] == [1, 2]


@pytest.mark.parametrize(
    ("method", "kwargs"),
    [
        # What Airflow asks for when a trigger's class is gone, its fields don't fit, or it raised.
        ("__fail__", {"error": "Trigger failure", "traceback": ["TypeError: unexpected keyword argument 'pace'"]}),
        ("resume_of_a_later_release", {"event": {}}),
        ("resume", {"event": {}, "of_a_later_release": 1}),
    ],
)
def test_a_deferral_that_cant_be_read_is_an_error_of_ours_that_a_retry_heals(
    fleet: Fleet, method: str, kwargs: dict[str, Any]
) -> None:
    fleet.declare("orders")
    operator = SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=fleet.specs["orders"])
    with pytest.raises(KstreamError, match="release") as raised:
        operator.resume_execution(method, kwargs, context())
    assert RETRY_IF_IT_HELPS.evaluate(raised.value, 1, 3).action is RetryAction.RETRY
    with pytest.raises(TaskDeferred):
        operator.execute(context())
    assert [number for number, _ in fleet.generations("orders")] == [1], "the retry finds what runs"


def test_a_deferral_that_ran_out_of_time_stays_airflows_own_error(fleet: Fleet) -> None:
    fleet.declare("orders")
    operator = SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=fleet.specs["orders"])
    with pytest.raises(TaskDeferralTimeout):
        operator.resume_execution("__fail__", {"error": "Trigger timeout"}, context())
