"""A job that somebody else submitted, kept alive by a DAG of a user: too early at first, then pushed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.airflow import CONNECTION, LiveAirflow
from tests.live.airflow_api import TaskRef
from tests.live.streams import PUSHABLE_BY_HAND, UNAWARE, await_that, look, rate_stream, reconciler, submit_by_hand

TAG = "nobodys-stream"
SPEC = rate_stream(TAG, TicketCredentials(), application=UNAWARE)
PUSHES = f'''
from airflow.sdk import DAG

from airflow_kstream.operators.token_push import DelegationTokenPushOperator

common = dict(cluster_conn_id="{CONNECTION}", application="{{{{{{{{ params.application }}}}}}}}")
who = dict(principal="{{principal}}", keytab="{{keytab}}")
params = {{{{"application": "none"}}}}

with DAG("push-early", schedule=None, params=params):
    DelegationTokenPushOperator(task_id="push", **common, **who)

with DAG("push-shortened", schedule=None, params=params):
    DelegationTokenPushOperator(task_id="push", shorten=True, **common, **who)
'''


@pytest.fixture
def supervisor(minicluster: Minicluster) -> Iterator[Reconciler]:
    with reconciler(minicluster, SPEC) as supervisor:
        yield supervisor


@pytest.fixture
def nobodys_job(minicluster: Minicluster, supervisor: Reconciler) -> Iterator[Application]:
    """A Spark job that nothing of ours started, once it commits."""
    session = supervisor.session
    submit_by_hand(minicluster, SPEC, TAG, **PUSHABLE_BY_HAND)
    [app] = session.yarn.applications(TAG)
    await_that(lambda: any(each.position.commit >= 0 for each in look(session, SPEC).checkpoints), "it commits")
    yield app
    session.yarn.kill(app.id, "the test is over", timedelta(seconds=60))


def test_a_dag_pushes_tokens_to_a_job_as_soon_as_that_lengthens_its_life(
    minicluster: Minicluster, airflow: LiveAirflow, nobodys_job: Application
) -> None:
    who = {"principal": minicluster.principal("streamer"), "keytab": minicluster.keytab("streamer")}
    with airflow.dag_file("pushes", PUSHES.format(**who)):

        def run(dag: str, state: str) -> TaskRef:
            task = TaskRef(dag, airflow.start(dag, {"application": nobodys_job.id}), "push")
            airflow.await_state(task, state)
            return task

        early, shortened = run("push-early", "skipped"), run("push-shortened", "success")
        pushed = airflow.api.xcom_entry(shortened, "return_value")
        assert pushed["application"] == nobodys_job.id
        assert pushed["old"]["token"] < pushed["new"]["token"]
        assert datetime.fromisoformat(pushed["new"]["until"]) < datetime.fromisoformat(pushed["old"]["until"])
        assert "or say --shorten" in airflow.api.task_log(early, 1)
