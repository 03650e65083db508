"""Values of `stream` in a DAG: templates crash nothing, and no secret reaches Airflow's database."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, XComArg, task
from airflow.sdk.log import _secrets_masker  # type: ignore[attr-defined]  # what the logs pass through
from airflow.serialization.serialized_objects import DagSerialization

from airflow_kstream.hooks.connection import _mask_secrets
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.operators.retries import RETRY_IF_IT_HELPS
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

    with DAG("orders", schedule="@daily"):
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


def test_a_mapping_that_is_refused_keeps_its_dag_and_says_so_there() -> None:
    """What runs stays watched, as for a refused file."""
    dag = DAG("orders", schedule="@daily", doc_md="Orders.")
    with dag, pytest.warns(UserWarning, match="kredentials"):
        keep = operator({"name": "orders", "kredentials": {"mode": VALUE}})
    assert (keep.stream, keep._spec().name) == ({"name": "orders"}, "orders")
    assert [asset.uri for asset in keep.outlets] == ["kstream://prod/orders"]
    assert str(dag.doc_md).startswith("Orders.\n\nTask `keep`: the declaration is refused, so its stream is kept")
    assert VALUE not in json.dumps(DagSerialization.to_dict(dag))


def test_a_refused_mapping_without_a_name_fails_its_task_and_nothing_else() -> None:
    with pytest.warns(UserWarning, match="name is 'No Name'"):
        keep = operator(STREAM | {"name": "No Name"})
    assert keep.page == {}
    with pytest.raises(InvalidInput, match="name is 'No Name'"):
        keep._spec()


@pytest.mark.parametrize("late", ["{{ var.value.jar }}", "{% if 1 %}/a.py{% endif %}"])
def test_a_mapping_with_a_template_is_checked_by_its_task(late: str) -> None:
    assert operator(STREAM | {"application": late, "kredentials": 1}).refusal == ""


def test_a_mapping_with_an_xcom_is_checked_by_its_task() -> None:
    @task
    def jar() -> str:
        return "/jobs/orders.py"

    with DAG("orders", schedule="@daily"):
        made = operator(STREAM | {"application": jar(), "kredentials": 1})
    assert (made.refusal, made.upstream_task_ids) == ("", {"jar"})


ENDS_TASKS: dict[str, Any] = {
    "retries": 0,
    "retry_delay": timedelta(days=1),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(days=7),
    "execution_timeout": timedelta(seconds=1),
    "depends_on_past": True,
    "wait_for_downstream": True,
    "retry_policy": None,
    "on_failure_callback": print,
}


def test_default_arguments_end_no_watch() -> None:
    with DAG("orders", schedule="@daily", default_args=ENDS_TASKS):
        alone = operator(STREAM)
        mapped = SparkStreamOperator.partial(task_id="many", cluster_conn_id="prod").expand(stream=[STREAM])
    for keep in (alone, mapped):
        assert (keep.retries or 0) > 1000
        assert (keep.retry_delay, keep.max_retry_delay) == (timedelta(minutes=1), None)
        assert not keep.retry_exponential_backoff
        assert keep.execution_timeout is None
        assert not keep.depends_on_past
        assert not keep.wait_for_downstream
        assert keep.retry_policy is RETRY_IF_IT_HELPS
    assert alone.on_retry_callback == [print]
    assert mapped.unmap({"stream": STREAM}).on_retry_callback == [print]
    assert (alone.max_active_tis_per_dag, mapped.max_active_tis_per_dag) == (1, None)


def test_the_operators_own_arguments_hold() -> None:
    own = ENDS_TASKS | {"on_retry_callback": repr}
    keep = SparkStreamOperator(task_id="keep", stream=STREAM, cluster_conn_id="prod", **own)
    assert (keep.retries, keep.retry_delay) == (0, timedelta(days=1))
    assert (keep.depends_on_past, keep.execution_timeout) == (True, timedelta(seconds=1))
    assert keep.retry_policy is None
    assert [each.__name__ for each in keep.on_retry_callback] == ["repr"]


@pytest.mark.parametrize("schedule", [None, "@once", []])
def test_a_dag_without_a_schedule_that_repeats_names_the_line_to_add_once(schedule: Any) -> None:
    with DAG("orders", schedule=schedule) as dag:
        with pytest.warns(UserWarning, match="no schedule"):
            operator(STREAM)
        SparkStreamOperator.partial(task_id="many", cluster_conn_id="prod").expand(stream=[STREAM])
    line = re.search(r"Add to the DAG: `(.*)`", str(dag.doc_md))
    assert line
    with eval(f"DAG('orders', {line[1]})") as mended:  # what a person does with it
        operator(STREAM)
    assert mended.doc_md is None


def test_the_serialized_dag_holds_where_a_secret_is_kept() -> None:
    with DAG("orders", schedule="@daily") as dag:
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
