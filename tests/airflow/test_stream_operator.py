"""The operator in a real Airflow, on the real cluster, as a person sees and clicks it."""

from __future__ import annotations

import json

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.stream import TicketCredentials
from airflow_kstream.policy.streams.heartbeat import verified
from airflow_kstream.supervise.streams.desired import request_restart, set_desired
from tests.airflow.conftest import LiveAirflow
from tests.cluster.streams import await_that, look, rate_stream, reconciler


def test_a_stream_lives_through_every_click_and_stops_when_a_person_wants_it(
    minicluster: Minicluster, airflow: LiveAirflow
) -> None:
    """Defer, clear, mark failed: the application stays the same. Restart and stop are desired states."""
    spec = rate_stream("clicked", TicketCredentials())
    task = airflow.declare(spec)
    with reconciler(minicluster, spec) as supervisor:
        airflow.await_state(task, "deferred")
        await_that(lambda: verified(look(supervisor.session, spec)), "it commits")
        first = look(supervisor.session, spec).current
        assert first is not None

        report = airflow.api.xcom_entry(task, "report")
        assert (report["application"], report["generation"]) == (first.id, 1)
        links = airflow.api.extra_links(task)
        assert str(links["YARN application"]).endswith(f"/cluster/app/{first.id}")
        assert links["YARN logs"]

        await_that(
            lambda: airflow.metrics.value("airflow.kstream.clicked.commit_age_seconds") is not None, "it is measured"
        )
        horizon = airflow.metrics.value("airflow.kstream.clicked.horizon_seconds")
        assert horizon is not None
        assert 0 < horizon < minicluster.plan.max_lifetime.total_seconds()

        airflow.api.clear(task)
        await_that(lambda: airflow.api.task_instance(task).try_number > 1, "the cleared task runs again")
        airflow.await_state(task, "deferred")
        airflow.api.mark(task, "failed")
        airflow.await_state(task, "failed")
        # Airflow loses a click that comes while its scheduler writes that the run has failed.
        await_that(lambda: airflow.api.dag_run_state(task.dag_id, task.run_id) == "failed", "the run has failed")
        still = look(supervisor.session, spec)
        assert (still.current, still.generation) == (first, 1)

        airflow.api.clear(task)
        airflow.await_state(task, "deferred")
        request_restart(supervisor.subject, "a new jar")
        await_that(lambda: look(supervisor.session, spec).generation == 2, "the task restarts it")
        await_that(lambda: verified(look(supervisor.session, spec)), "generation 2 commits")
        assert len([app for _, app in look(supervisor.session, spec).applications if app.alive]) == 1

        assert airflow.metrics.value("airflow.kstream.clicked.restarts") == 1
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
        airflow.await_state(task, "success")
        ended = look(supervisor.session, spec).current
        assert ended is not None
        assert ended.succeeded
    _nothing_secret(
        minicluster, airflow, task_log=airflow.api.task_log(task, airflow.api.task_instance(task).try_number)
    )


def test_the_jobs_own_failure_is_the_tasks_failure_with_the_reason(
    minicluster: Minicluster, airflow: LiveAirflow
) -> None:
    """Airflow's retry then starts the next generation."""
    spec = rate_stream("doomed", TicketCredentials())
    task = airflow.declare(spec)
    with reconciler(minicluster, spec) as supervisor:
        airflow.await_state(task, "deferred")
        await_that(lambda: verified(look(supervisor.session, spec)), "it commits")
        app = look(supervisor.session, spec).current
        assert app is not None
        supervisor.session.yarn.kill(app.id, "pulled the plug", spec.stop.kill_wait)
        await_that(lambda: look(supervisor.session, spec).generation == 2, "the retry starts generation 2")
        assert "pulled the plug" in airflow.api.task_log(task, 1)
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
        airflow.await_state(task, "success")


def _nothing_secret(minicluster: Minicluster, airflow: LiveAirflow, task_log: str) -> None:
    """Neither the log nor any file that Airflow wrote holds the keytab's bytes."""
    secret = minicluster.keytab("streamer").read_bytes()[-16:]
    written = [path for path in airflow.home.root.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert [path for path in written if secret in path.read_bytes()] == []
    assert json.dumps(secret.hex()) not in task_log
