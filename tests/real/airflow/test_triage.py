"""The faces of triage in a real Airflow: a task that asks for a verdict, and one that gets it with its failure."""

from __future__ import annotations

from collections.abc import Iterator
from getpass import getuser

import pytest

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.stream import TicketCredentials
from tests.live.airflow import CONNECTION, LiveAirflow
from tests.live.airflow_api import TaskRef
from tests.live.streams import UNAWARE, await_that, rate_stream, submit_by_hand
from tests.real.cluster.test_triage import ended, session_of

TAG = "triage-in-airflow"
DAG = """
from airflow.sdk import DAG, task

from airflow_kstream.notifications.triage import TriageNotifier
from airflow_kstream.operators.triage import LogTriageOperator

with DAG("triaged", schedule=None):

    @task(on_failure_callback=[TriageNotifier(cluster_conn_id="{connection}")])
    def submit():
        raise RuntimeError("{application} ended with FAILED")

    submit()
    LogTriageOperator(task_id="why", cluster_conn_id="{connection}", application="{application}")
"""


@pytest.fixture(scope="module")
def application(minicluster: Minicluster) -> Iterator[str]:
    """A job that failed, and whose logs are on HDFS."""
    job = rate_stream("typo", TicketCredentials(), application=UNAWARE, arguments=("no-such-scheme:typo",))
    with session_of(minicluster) as session:
        submit_by_hand(minicluster, job, TAG, **{"spark.yarn.maxAppAttempts": "1"})
        (app,) = session.yarn.applications(TAG)
        await_that(lambda: ended(session, app), "it fails")
        logs = ContainerLogs(session.cluster, session.identity)
        await_that(lambda: any(logs.aggregated_nodes(session.hdfs, app.id, getuser())), "its logs are aggregated")
        yield app.id


def test_a_task_that_failed_has_the_verdict_and_so_has_one_that_asks(airflow: LiveAirflow, application: str) -> None:
    with airflow.dag_file("triaged", DAG.format(connection=CONNECTION, application=application)):
        run = airflow.start("triaged")
        assert airflow.end("triaged", run) == "failed"
        submit, why = (TaskRef("triaged", run, task) for task in ("submit", "why"))
        verdict = airflow.api.xcom_entry(why, "return_value")
        assert verdict["outcome"] == "unknown"
        assert any("no-such-scheme" in template["text"] for template in verdict["templates"])
        assert airflow.api.xcom_entry(submit, "triage") == verdict
        log = airflow.api.task_log(submit, 1)
        assert "no signature explains it" in log
        assert "no-such-scheme" in log
