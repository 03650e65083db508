"""The operator in a real Airflow, on the real cluster, as a person sees and clicks it."""

from __future__ import annotations

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.airflow import LiveAirflow
from tests.live.streams import await_commits, await_that, look, rate_stream, reconciler, stopped


def test_the_jobs_own_failure_is_the_tasks_failure_with_the_reason(
    minicluster: Minicluster, airflow: LiveAirflow
) -> None:
    """Airflow's retry then starts the next generation."""
    spec = rate_stream("doomed", TicketCredentials())
    task = airflow.declare(spec)
    with reconciler(minicluster, spec) as supervisor:
        airflow.await_state(task, "deferred")
        await_commits(supervisor.session, spec)
        app = look(supervisor.session, spec).current
        assert app is not None
        supervisor.session.yarn.kill(app.id, "pulled the plug", spec.stop.kill_wait)
        await_that(lambda: look(supervisor.session, spec).generation == 2, "the retry starts generation 2")
        assert "pulled the plug" in airflow.api.task_log(task, 1)
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
        await_that(lambda: stopped(look(supervisor.session, spec)), "it stops")
        airflow.detach(task)
