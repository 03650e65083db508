"""A `cluster_conn_id` that names no connection: said at once. No cluster and no Airflow is running."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from airflow.sdk import BaseOperator

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.kerberos import KerberosHook
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator, KeytabCheckOperator
from airflow_kstream.sensors.leases import HdfsOpenFileSensor
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor
from airflow_kstream.sensors.tokens import DelegationTokenExpirySensor

if TYPE_CHECKING:
    from airflow.sdk import Context

NAME = "nowhere"
WORDS = f"read connection {NAME}: Airflow has no such connection, or its API server is away. Retrying may help."
COMMON: dict[str, Any] = {"cluster_conn_id": NAME}
CONTEXT = cast("Context", {"dag_run": SimpleNamespace(run_type="scheduled", triggering_user_name=None)})
FACES = (
    KerberosTicketRenewOperator(task_id="renew", **COMMON),
    KeytabCheckOperator(task_id="check", **COMMON),
    HdfsLeaseRecoverOperator(task_id="recover", path="/data", **COMMON),
    KerberosTicketExpirySensor(task_id="tickets_deferrable", deferrable=True, **COMMON),
    KerberosTicketExpirySensor(task_id="tickets", deferrable=False, **COMMON),
    DelegationTokenExpirySensor(task_id="tokens", stream="orders", deferrable=True, **COMMON),
    HdfsOpenFileSensor(task_id="files", path="/data", deferrable=False, **COMMON),
)


@pytest.mark.parametrize("task", FACES, ids=lambda task: task.task_id)
def test_a_task_of_a_missing_connection_fails_and_airflows_retries_decide(task: BaseOperator) -> None:
    with pytest.raises(Unavailable) as refused:
        task.execute(CONTEXT)
    assert str(refused.value) == WORDS


@pytest.mark.parametrize("hook", [KstreamClusterHook(NAME).cluster, KerberosHook(NAME).identity])
def test_a_hook_names_the_missing_connection(hook: object) -> None:
    with pytest.raises(Unavailable) as refused, hook():  # type: ignore[operator]
        pass
    assert str(refused.value) == WORDS


def test_a_form_that_tests_a_missing_connection_says_so() -> None:
    assert KstreamClusterHook(NAME).test_connection() == (False, WORDS)


def test_a_missing_spark_connection_is_named_like_a_missing_cluster() -> None:
    operator = SparkStreamOperator(task_id="it", cluster_conn_id="prod", conn_id=NAME, stream="{name: orders}")
    with pytest.raises(Unavailable) as refused:
        operator._spark()
    assert str(refused.value) == WORDS
