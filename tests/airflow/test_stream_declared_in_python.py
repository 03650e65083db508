"""Values of `stream` in a DAG: templates crash nothing, and no secret reaches Airflow's database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from airflow.sdk import DAG, XComArg, task
from airflow.sdk.log import _secrets_masker  # type: ignore[attr-defined]  # what the logs pass through
from airflow.serialization.serialized_objects import DagSerialization

from airflow_kstream.hooks.cluster import _mask_secrets
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.operators.streams import SparkStreamOperator

VALUE = "zzz-very-secret"
STREAM = {"name": "orders", "credentials": {"mode": "ticket"}, "application": "/jobs/orders.py", "checkpoints": ["/c"]}


def operator(stream: Any) -> SparkStreamOperator:
    return SparkStreamOperator(task_id="keep", stream=stream, cluster_conn_id="prod")


@pytest.mark.parametrize("stream", ["{{ var.value.orders }}", "{name: orders}"])
def test_text_is_read_when_the_task_runs(stream: str) -> None:
    assert operator(stream).stream == stream


def test_text_in_yaml_is_a_declaration() -> None:
    assert operator(json.dumps(STREAM))._spec().name == "orders"


def test_an_xcom_is_read_when_the_task_runs() -> None:
    @task
    def declare() -> dict[str, Any]:
        return STREAM

    with DAG("orders"):
        made = operator(declare())
    assert isinstance(made.stream, XComArg)


@pytest.mark.parametrize(
    "secretive",
    [
        {"conf": {"spark.ssl.keyPassword": VALUE}},
        {"deploy": {"environment": {"DB_PASSWORD": VALUE}}},
        {"arguments": ["--password", VALUE]},
        {"conf": {"spark.ssl.keyPassword": "{{ conn.orders.password }}"}},
    ],
)
def test_a_secret_in_clear_is_refused_where_the_dag_is_parsed(secretive: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="a secret in clear") as refused:
        operator(STREAM | secretive)
    assert VALUE not in str(refused.value)


def test_a_secret_in_a_spec_that_was_built_in_python_is_refused_too() -> None:
    spec = StreamSpec("orders", TicketCredentials(), "/jobs/orders.py", ("/c",), conf={"spark.ssl.keyPassword": VALUE})
    with pytest.raises(InvalidInput, match="a secret in clear"):
        operator(spec)


def test_a_spec_that_was_built_in_python_is_refused_where_the_dag_is_parsed() -> None:
    spec = StreamSpec("Orders", TicketCredentials(), "/jobs/orders.py", ("/c",), conf={"spark.master": "local"})
    with pytest.raises(InvalidInput, match=r"name is 'Orders'; allowed is .*; conf sets spark\.master, .* is yarn"):
        operator(spec)


def test_the_serialized_dag_holds_where_a_secret_is_kept() -> None:
    with DAG("orders") as dag:
        operator(STREAM | {"conf": {"spark.ssl.keyPassword": {"secret": "conn:orders"}}})
    assert "conn:orders" in json.dumps(DagSerialization.to_dict(dag))


def test_a_reference_that_was_built_in_python_becomes_plain_data() -> None:
    conf = {"spark.ssl.keyPassword": SecretRef("conn:orders")}
    spec = StreamSpec("orders", TicketCredentials(), "/jobs/orders.py", ("/c",), conf=conf)
    declaration = operator(spec).stream
    assert isinstance(declaration, Mapping)
    assert declaration["conf"] == {"spark.ssl.keyPassword": {"secret": "conn:orders"}}


def test_masks_of_a_connection_leave_ordinary_words_in_the_logs() -> None:
    """A mask hides its value in the whole process: a masked `kafka` would vanish from every line."""
    _mask_secrets(
        {
            "spark.hadoop.dfs.client.token.always-use": "false",
            "spark.kafka.clusters.c.sasl.token.mechanism": "PLAIN",
            "spark.sql.tokenizer": "kafka",
            "spark.ssl.keyPassword": VALUE,
        }
    )
    line = f"the query is false, kafka is up, mechanism PLAIN, {VALUE}"
    assert _secrets_masker().redact(line) == "the query is false, kafka is up, mechanism PLAIN, ***"


def test_templates_of_its_notifier_wait_for_an_event() -> None:
    text = "{{ event.words }}"
    declared = {**STREAM, "notify": {"notifier": "a.B", "kwargs": {"text": text}}}
    task = operator(declared)
    task.render_template_fields(context={})

    assert task._spec().notify == NotifyPolicy("a.B", {"text": text})


def test_a_secret_for_its_notifier_is_refused_where_the_dag_is_parsed() -> None:
    declared = {**STREAM, "notify": {"notifier": "a.B", "kwargs": {"password": "hunter22"}}}
    with pytest.raises(InvalidInput, match=r"notify\.kwargs\.password: a secret in clear"):
        operator(declared)
