"""The stored states as pages read them: Airflow's own tables, in a database of this test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from airflow.models import import_all_models
from airflow.models.asset import AssetActive, AssetModel, TaskOutletAssetReference
from airflow.models.asset_state_store import AssetStateStoreModel
from airflow.models.dag import DagModel
from airflow.models.taskinstance import TaskInstance
from sqlalchemy import create_engine, insert
from sqlalchemy.orm import Session

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.stream_state import StreamState, TaskIds
from airflow_kstream.plugin.readable import unseen_by
from airflow_kstream.states.reading import (
    DeclaredStream,
    declared_streams,
    number_of_streams,
    stored_clusters,
    stored_of,
    stored_states,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATE = StreamState("running", "it runs", 3, "application_1_0001", NOW, by=TaskIds("stream-prod-orders", "r", "keep"))


@pytest.fixture
def session() -> Iterator[Session]:
    engine = create_engine("sqlite://")
    # A task's table names others.
    import_all_models()  # type: ignore[no-untyped-call]
    for model in (AssetModel, AssetActive, AssetStateStoreModel, DagModel, TaskOutletAssetReference, TaskInstance):
        model.__table__.create(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


def store(session: Session, uri: str, active: bool = True, **values: Any) -> None:
    asset = AssetModel(name=uri, uri=uri, group="asset", extra={})
    session.add(asset)
    session.flush()
    if active:
        session.add(AssetActive(name=uri, uri=uri))
    session.add_all(
        AssetStateStoreModel(asset_id=asset.id, key=key, value=text, updated_at=NOW) for key, text in values.items()
    )
    session.flush()


def test_each_streams_state_is_read_with_its_cluster(session: Session) -> None:
    detail = {"version": 1, "detail": {"ends": []}}
    store(session, asset_uri("p/1", "orders"), verdict=json.dumps(STATE.to_json()), detail=json.dumps(detail))
    store(session, asset_uri("east", "sales"), active=False, verdict=json.dumps(STATE.to_json()))
    store(session, "s3://bucket/kstream", verdict=json.dumps(STATE.to_json()))
    sales, orders = stored_states(session)
    assert (orders.cluster, orders.stream, orders.active, orders.state, orders.written) == (
        "p/1",
        "orders",
        True,
        STATE,
        NOW,
    )
    assert orders.detail == detail
    assert (sales.cluster, sales.stream, sales.active, sales.detail) == ("east", "sales", False, None)


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut", "nested"])
def test_a_row_that_cant_be_read_hides_no_other(session: Session, text: str) -> None:
    store(session, asset_uri("prod", "orders"), verdict=text, detail="[]", told="17")
    store(session, asset_uri("prod", "sales"), verdict=json.dumps(STATE.to_json()))
    orders, sales = stored_states(session)
    assert (orders.state, orders.detail, orders.told.kinds) == (None, None, frozenset())
    assert sales.state == STATE


def test_what_tasks_keep_of_a_cluster_names_the_dag_that_wrote_it(session: Session) -> None:
    kept: dict[str, Any] = {"ticket etl@A": json.dumps({"principal": "etl@A"})}
    store(session, asset_uri("prod"), **kept)
    [prod] = stored_states(session)
    assert prod.others["ticket etl@A"].value == {"principal": "etl@A"}
    assert prod.others["ticket etl@A"].by == ""


def test_a_page_of_one_stream_reads_no_other(session: Session) -> None:
    for stream in ("orders", "sales", ""):
        store(session, asset_uri("p/1", stream), verdict=json.dumps(STATE.to_json()))
    store(session, asset_uri("east", "orders"), verdict=json.dumps(STATE.to_json()))
    assert [(each.cluster, each.stream) for each in stored_of(session, "p/1", "sales")] == [
        ("p/1", ""),
        ("p/1", "sales"),
    ]
    assert [(each.cluster, each.stream) for each in stored_clusters(session)] == [("p/1", "")]
    assert number_of_streams(session) == 4


def parsed(dag: str, *, stale: bool = False) -> DagModel:
    model = DagModel(dag_id=dag, bundle_name="dags", is_stale=stale, is_paused=True)  # type: ignore[no-untyped-call]
    model.max_active_tasks, model.max_consecutive_failed_dag_runs, model.has_task_concurrency_limits = 16, 0, False
    return model


def declare(session: Session, cluster: str, stream: str, dag: str, *, stale: bool = False) -> None:
    """Write what the DAG processor writes of a task that names the stream's asset as its outlet."""
    uri = asset_uri(cluster, stream)
    asset = AssetModel(name=uri, uri=uri, group="asset", extra={})
    session.add_all([asset, parsed(dag, stale=stale)])
    session.flush()
    session.add(TaskOutletAssetReference(asset_id=asset.id, dag_id=dag, task_id="keep"))
    session.flush()


def test_a_stream_is_declared_by_each_dag_that_was_parsed_with_it(session: Session) -> None:
    declare(session, "p/1", "orders", "stream-p-1.orders")
    declare(session, "p/1", "sales", "stream-p-1.sales")
    declare(session, "east", "gone", "stream-east.gone", stale=True)
    orders = DeclaredStream("p/1", "orders", "stream-p-1.orders", "keep", paused=True)
    assert [each.stream for each in declared_streams(session)] == ["orders", "sales"]
    assert declared_streams(session, "p/1", "orders") == (orders,)
    assert declared_streams(session, "p/1", "nobody") == declared_streams(session, "east", "gone") == ()


def runs(session: Session, dag: str, *states: str) -> None:
    """Write a run of this DAG for each state of its task."""
    of = {
        "dag_id": dag,
        "task_id": "keep",
        "map_index": -1,
        "try_number": 1,
        "max_tries": 0,
        "pool": "p",
        "pool_slots": 1,
    }
    rows = [{**of, "id": uuid4(), "run_id": f"run-{state}", "state": state} for state in states]
    session.execute(insert(TaskInstance.__table__), rows)


OWN, OTHER, STRANGER = "stream-prod.orders", "etl", "aaa"


@pytest.mark.parametrize(
    ("paused", "waits", "chosen"),
    [
        ({STRANGER, OWN, OTHER}, "", OWN),
        ({STRANGER, OWN}, "", OWN),
        ({STRANGER}, "", OWN),
        ({STRANGER, OWN}, OWN, OWN),
        ({OWN}, OTHER, OTHER),
    ],
)
def test_of_the_dags_that_declare_a_stream_its_row_names_the_one_that_keeps_it(
    session: Session, paused: set[str], waits: str, chosen: str
) -> None:
    session.add_all(map(parsed, (STRANGER, OTHER, OWN)))
    session.flush()
    if waits:
        runs(session, waits, "deferred")
    declarers = [DeclaredStream("prod", "orders", dag, "keep", dag in paused) for dag in (STRANGER, OTHER, OWN)]
    [row] = unseen_by(session, declarers)
    assert (row.by.dag, row.task, row.own) == (chosen, "deferred" if waits else "", chosen == OWN)


def test_without_a_dag_of_its_own_a_stream_is_that_of_one_that_is_not_paused(session: Session) -> None:
    declarers = [DeclaredStream("prod", "orders", dag, "keep", dag == STRANGER) for dag in (STRANGER, OTHER)]
    assert [(row.by.dag, row.own) for row in unseen_by(session, declarers)] == [(OTHER, False)]


@pytest.mark.parametrize("states", [("deferred", "scheduled"), ("scheduled", "deferred")])
def test_of_two_runs_the_one_that_watches_counts(session: Session, states: tuple[str, ...]) -> None:
    session.add(parsed(OWN))
    session.flush()
    runs(session, OWN, *states)
    [row] = unseen_by(session, [DeclaredStream("prod", "orders", OWN, "keep", paused=False)])
    assert (row.task, row.by.run) == ("deferred", "run-deferred")
