"""Which errors of our tasks Airflow retries, as its own task runner decides it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import RetryTask
from airflow.serialization.serialized_objects import DagSerialization

from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    Denied,
    InvalidInput,
    KstreamError,
    NotFound,
    RestartAborted,
    StreamEnded,
    SubmissionFailed,
    Unavailable,
)
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.operators.stream_control import StreamControlOperator
from airflow_kstream.operators.streams import ClaimedStreamOperator, SparkStreamOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator, KeytabCheckOperator
from airflow_kstream.operators.triage import LogTriageOperator
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from airflow_kstream.sensors.leases import HdfsOpenFileSensor
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor
from airflow_kstream.sensors.tokens import DelegationTokenExpirySensor

STREAM = {"name": "orders", "credentials": {"mode": "ticket"}, "application": "/j.py", "checkpoints": ["/c"]}
TASKS: list[tuple[type[BaseOperator], dict[str, Any]]] = [
    (SparkStreamOperator, {"stream": STREAM}),
    (ClaimedStreamOperator, {"name": "orders", "refusal": "no YAML"}),
    (VanishedStreamsOperator, {"declared": []}),
    (StreamControlOperator, {"action": "hold", "reason": "Kafka is moved"}),
    (HdfsLeaseRecoverOperator, {"path": "/data"}),
    (KerberosTicketRenewOperator, {}),
    (KeytabCheckOperator, {}),
    (LogTriageOperator, {"application": "application_17_0042"}),
    (HdfsOpenFileSensor, {"path": "/data"}),
    (KerberosTicketExpirySensor, {}),
    (DelegationTokenExpirySensor, {"stream": "orders"}),
]


def is_retried(task: BaseOperator, error: BaseException) -> bool:
    """Ask Airflow's own code what becomes of the task: simulated is only a task instance that has retries left."""
    server = SimpleNamespace(should_retry=True, max_tries=20)
    ti = SimpleNamespace(
        task=task, try_number=1, _ti_context_from_server=server, _failure_metrics_emitted=True, rendered_map_index=None
    )
    message, _ = task_runner._handle_current_task_failed(cast("Any", ti), error, structlog.get_logger())
    return isinstance(message, RetryTask)


@pytest.mark.parametrize(("kind", "fields"), TASKS, ids=lambda value: getattr(value, "__name__", ""))
def test_each_task_asks_its_error_whether_a_retry_helps(kind: type[BaseOperator], fields: dict[str, Any]) -> None:
    task = kind(task_id="task", cluster_conn_id="prod", **fields)
    assert is_retried(task, Unavailable("no answer"))
    assert not is_retried(task, Denied("not yours"))


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (InvalidInput("path is ''"), False),
        (Denied("403"), False),
        (NotFound("no such file"), False),
        (Conflict("others hold the claim"), False),
        (Conflict("others wrote it meanwhile").passing(), True),
        (Unavailable("no answer"), True),
        (Unavailable("a wrong address").passing(False), False),
        (SubmissionFailed("exit status 1"), True),
        (RestartAborted("the queue is full"), True),
        # Others end these: the DAG of the tickets, and the stream's next generation, which the next try watches.
        (CredentialError("the ticket has expired"), True),
        (StreamEnded("out of memory"), True),
        # Not ours: Airflow's own rule.
        (OSError("no space left on device"), True),
    ],
    ids=repr,
)
def test_an_error_is_retried_if_that_can_help(error: BaseException, retried: bool) -> None:
    task = HdfsLeaseRecoverOperator(task_id="recover", cluster_conn_id="prod", path="/data")
    assert is_retried(task, error) is retried


def test_every_kind_of_error_is_decided() -> None:
    task = HdfsLeaseRecoverOperator(task_id="recover", cluster_conn_id="prod", path="/data")
    others = {CredentialError, StreamEnded}
    for kind in KstreamError.__subclasses__():
        assert is_retried(task, kind("why")) is (kind.retryable or kind in others), kind


def test_a_mapped_task_has_the_policy_and_the_database_gets_a_flag_alone() -> None:
    with DAG("leases", schedule=None) as dag:
        HdfsLeaseRecoverOperator.partial(task_id="recover", cluster_conn_id="prod").expand(path=["/a", "/b"])
    mapped = dag.get_task("recover")
    assert not is_retried(mapped.unmap({"path": "/a"}), Denied("not yours"))
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag)).get_task("recover")
    assert stored.has_retry_policy


def test_an_author_can_have_another_policy_or_none() -> None:
    own = ExceptionRetryPolicy(rules=[])
    with DAG("own", schedule=None, default_args={"retry_policy": own}):
        task = HdfsLeaseRecoverOperator(task_id="recover", cluster_conn_id="prod", path="/data")
        sensor = HdfsOpenFileSensor(task_id="open", cluster_conn_id="prod", path="/data")
        alone = HdfsOpenFileSensor(task_id="alone", cluster_conn_id="prod", path="/data", retry_policy=None)
    assert task.retry_policy is sensor.retry_policy is own
    assert alone.retry_policy is None
    assert is_retried(alone, Denied("not yours"))
