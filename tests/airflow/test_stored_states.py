"""The stored states as pages read them: Airflow's own tables, in a database of this test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.models.asset import AssetActive, AssetModel, TaskOutletAssetReference
from airflow.models.asset_state_store import AssetStateStoreModel
from airflow.models.dag import DagModel
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.stream_state import StreamState, TaskIds
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
    for model in (AssetModel, AssetActive, AssetStateStoreModel, DagModel, TaskOutletAssetReference):
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


def test_a_row_that_cant_be_read_hides_no_other(session: Session) -> None:
    store(session, asset_uri("prod", "orders"), verdict="{", detail="[]", told="17")
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


def declare(session: Session, cluster: str, stream: str, dag: str, *, stale: bool = False) -> None:
    """Write what the DAG processor writes of a task that names the stream's asset as its outlet."""
    uri = asset_uri(cluster, stream)
    asset = AssetModel(name=uri, uri=uri, group="asset", extra={})
    model = DagModel(dag_id=dag, bundle_name="dags", is_stale=stale, is_paused=True)  # type: ignore[no-untyped-call]
    model.max_active_tasks, model.max_consecutive_failed_dag_runs, model.has_task_concurrency_limits = 16, 0, False
    session.add_all([asset, model])
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
