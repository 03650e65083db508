"""Streams of Flink's in Airflow: their operator, the shipped DAG of their files, and orders that nobody would obey."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec, TicketCredentials
from airflow_kstream.operators.streams import FlinkStreamOperator, SparkStreamOperator
from tests.airflow.declarations import Declarations
from tests.simulated.life import SPEC

FLINK = {
    "name": "orders",
    "engine": "flink",
    "credentials": {"mode": "ticket"},
    "application": "hdfs:///apps/orders.jar",
    "checkpoints": ["/flink/orders"],
    "outputs": ["/data/orders"],
}
UNNAMED = {field: value for field, value in FLINK.items() if field != "engine"}
WATCHED = FlinkStreamSpec("orders", TicketCredentials(), "hdfs:///apps/orders.jar", ("/flink/orders",))


def operator(stream: Any) -> FlinkStreamOperator:
    return FlinkStreamOperator(task_id="keep", stream=stream, cluster_conn_id="prod")


@pytest.mark.parametrize("stream", [FLINK, UNNAMED, json.dumps(FLINK), FlinkStreamSpec.from_mapping(FLINK)])
def test_a_declaration_is_a_flink_stream(stream: Any) -> None:
    made = operator(stream)
    assert made._spec() == FlinkStreamSpec.from_mapping(FLINK)
    assert not hasattr(made, "conn_id"), "Flink has no connection of Airflow's"


def test_each_operator_refuses_the_other_engines_declaration() -> None:
    with pytest.raises(InvalidInput, match="engine is spark; allowed is flink in FlinkStreamOperator"):
        operator(SPEC)
    with pytest.raises(InvalidInput, match="engine is flink; allowed is spark in SparkStreamOperator"):
        SparkStreamOperator(task_id="keep", cluster_conn_id="prod", stream=FlinkStreamSpec.from_mapping(FLINK))
    text = SparkStreamOperator(task_id="keep", cluster_conn_id="prod", stream=json.dumps(FLINK))
    with pytest.raises(InvalidInput, match="engine is flink; allowed is spark"):
        text._spec()


def test_a_mapping_of_the_other_engine_keeps_its_dag_and_says_why() -> None:
    spark = {**UNNAMED, "engine": "spark", "application": "/jobs/orders.py"}
    del spark["outputs"]
    with pytest.warns(UserWarning, match="engine is spark; allowed is flink in FlinkStreamOperator"):
        assert operator(spark).refusal


def test_a_file_of_the_folder_gets_the_operator_of_its_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__SPARK_CONN_ID", "spark_prod")
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "orders.yaml").write_text(json.dumps(FLINK))
    spark = StreamSpec("clicks", TicketCredentials(), "/jobs/clicks.py", ("/data/clicks",)).to_mapping()
    (tmp_path / "prod" / "clicks.yaml").write_text(json.dumps({**spark, "airflow": {}}))
    dags = Declarations("streams", tmp_path, monkeypatch).dags()
    assert type(dags["stream-prod.orders"].get_task("keep")) is FlinkStreamOperator
    assert type(dags["stream-prod.clicks"].get_task("keep")) is SparkStreamOperator
