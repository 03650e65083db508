"""Streams as assets: their address, who names them, and their events for DAGs that are scheduled on them."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.dag_processing.collection import _get_dag_assets
from airflow.sdk import Asset
from airflow.serialization.definitions.assets import SerializedAsset
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG

from airflow_kstream.assets import asset_uri, cluster_asset, stream_asset
from airflow_kstream.operators.streams import ClaimedStreamOperator, SparkStreamOperator
from airflow_kstream.triggers.events import StreamEventTrigger
from tests.airflow.declarations import Declarations
from tests.simulated.fleet import Fleet
from tests.simulated.life import SPEC
from tests.simulated.virtual_time import run

MINUTE = 60.0


@pytest.mark.parametrize("written", ["kstream://prod/orders", "kstream://prod/orders/", "KSTREAM://prod//orders"])
def test_a_stream_is_one_asset_in_whatever_way_it_is_written(written: str) -> None:
    assert Asset("x", written).uri == stream_asset("prod", "orders").uri == "kstream://prod/orders"


def test_a_cluster_is_an_asset_of_its_own() -> None:
    assert Asset("kstream://prod").uri == cluster_asset("prod").uri == asset_uri("prod") == "kstream://prod/"


@pytest.mark.parametrize("connection", ["prod", "PROD.eu", "p#1", "p/1", "a b", "prod:8020", "p(1)!", "käse"])
def test_each_connections_streams_have_addresses_of_their_own(connection: str) -> None:
    """They are what the state of an asset is kept under, so Airflow must not write them in another way."""
    assert stream_asset(connection, "orders").uri == asset_uri(connection, "orders")
    assert cluster_asset(connection).uri == asset_uri(connection)
    assert asset_uri(connection).count("/") == 3
    assert "#" not in asset_uri(connection)


@pytest.mark.parametrize(
    "wrong", ["kstream:///orders", "kstream://prod/Orders", "kstream://prod/a/b", "kstream://p/o?x=1"]
)
def test_an_address_that_names_no_stream_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not a stream; write kstream://"):
        Asset(wrong)


def test_each_task_names_its_streams_asset_and_reads_its_clusters() -> None:
    task = SparkStreamOperator(task_id="keep", cluster_conn_id="prod", stream=SPEC, outlets=[Asset("s3://b/out")])
    claimed = ClaimedStreamOperator(task_id="keep", name="orders", refusal="no", cluster_conn_id="prod")
    text = SparkStreamOperator(task_id="keep", cluster_conn_id="{{ var.value.c }}", stream="{{ var.value.s }}")

    assert [asset.uri for asset in task.outlets] == ["s3://b/out", f"kstream://prod/{SPEC.name}"]
    assert [asset.uri for asset in task.inlets] == ["kstream://prod/"]
    assert [asset.uri for asset in claimed.outlets] == ["kstream://prod/orders"]
    assert [*text.outlets, *text.inlets] == []


@pytest.mark.parametrize(("kind", "text"), [("leases", "paths: [/data]"), ("tickets", "")])
def test_the_dags_of_tasks_that_tell_name_their_clusters_asset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    """As Airflow's database has them; mapped tasks, too. What was told is lost with an asset that no DAG names."""
    for dag_id, dag in Declarations(kind, tmp_path, monkeypatch).dags_of(text).items():
        stored = LazyDeserializedDAG(data=DagSerialization.to_dict(dag))
        named = {asset.uri for _, asset in _get_dag_assets(stored, SerializedAsset)}
        assert named == {f"kstream://{dag_id.partition('-')[2]}/"}


async def passed_on(trigger: StreamEventTrigger, until: float) -> list[tuple[str, bool]]:
    """Return the kinds that a watcher of an asset fires within so many seconds, and whether each is an end."""
    fired: list[tuple[str, bool]] = []
    name, fields = trigger.serialize()
    assert name == "airflow_kstream.triggers.events.StreamEventTrigger"
    try:
        async with asyncio.timeout(until), aclosing(cast("Any", StreamEventTrigger(**fields).run())) as events:
            async for event in events:
                payload = json.loads(json.dumps(event.payload))
                fired.append((payload["kind"], payload["ended"]))
    except TimeoutError:
        return fired
    raise AssertionError("a watcher never ends")


def test_a_watcher_passes_on_what_the_stream_tells_once_whatever_restarts(fleet: Fleet) -> None:
    fleet.declare("orders")
    watcher = StreamEventTrigger("simulated")
    told: list[tuple[str, bool]] = []

    async def story() -> None:
        told.extend(await passed_on(watcher, 2 * MINUTE))
        assert told == []
        fleet.yarn.away = True
        told.extend(await passed_on(watcher, 10 * MINUTE))
        told.extend(await passed_on(watcher, 10 * MINUTE))
        fleet.yarn.away = False
        fleet.restart_triggerer()
        told.extend(await passed_on(watcher, 10 * MINUTE))

    fleet.live(story)
    assert told == [("cluster_unreachable", False), ("cluster_unreachable", True)]


def test_what_a_watcher_can_not_note_it_passes_on_once_and_notes_later(fleet: Fleet) -> None:
    """Else each poll would trigger the DAG again, for as long as the store can be read and not written."""
    fleet.declare("orders")
    watcher = StreamEventTrigger("simulated")

    async def refuse(key: str) -> None:
        if key == watcher.key:
            raise OSError("a read-only database")

    async def story() -> None:
        fleet.yarn.away = True
        writes, fleet.at_write = fleet.at_write, refuse
        watching = asyncio.create_task(passed_on(watcher, 30 * MINUTE))
        await asyncio.sleep(20 * MINUTE)
        fleet.at_write = writes
        assert await watching == [("cluster_unreachable", False)]
        assert await passed_on(watcher, 10 * MINUTE) == []

    fleet.live(story)


def test_a_watcher_outlives_a_store_that_fails(fleet: Fleet) -> None:
    failures = [OSError("404"), OSError("404")]

    async def fail_twice(key: str) -> None:
        if failures:
            raise failures.pop()

    fleet.at_read = fail_twice
    assert run(passed_on(StreamEventTrigger("prod", "orders"), 5 * MINUTE), fleet.loop) == []
    assert not failures
    assert fleet.store_reads.total() >= 4
