"""The operator in a real Airflow, on the real cluster, as a person sees and clicks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from airflow_kstream.demo.airflow_api import TaskRef
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.application import Application
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream import TicketCredentials
from airflow_kstream.policy.streams.heartbeat import verified
from airflow_kstream.supervise.streams.desired import set_desired
from airflow_kstream.supervise.streams.reconcile import Reconciler
from tests.live.airflow import CONNECTION, LiveAirflow
from tests.live.streams import await_commits, await_that, look, rate_stream, reconciler, stopped
from tests.steps import Steps


@dataclass
class Clicked(Steps):
    """A stream with one submission and the task that keeps it."""

    airflow: LiveAirflow
    task: TaskRef
    supervisor: Reconciler

    def look(self) -> Observation:
        return look(self.supervisor.session, self.supervisor.spec)

    def running(self, generation: int) -> Application:
        """Return the application of this generation, which must be the current one."""
        observation = self.look()
        assert observation.generation == generation
        assert observation.current is not None
        assert observation.current.alive
        return observation.current

    def await_commit(self, generation: int) -> None:
        await_that(lambda: verified(self.look()), f"generation {generation} commits")

    def metric(self, name: str) -> float | None:
        return self.airflow.metrics.value(f"airflow.kstream.{CONNECTION}.clicked.{name}")


@pytest.fixture(scope="module")
def clicked(minicluster: Minicluster, airflow: LiveAirflow) -> Iterator[Clicked]:
    spec = rate_stream("clicked", TicketCredentials())
    task = airflow.declare(spec)
    with reconciler(minicluster, spec) as supervisor:
        yield Clicked(airflow, task, supervisor)
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")


class TestClicks:
    """Defer, clear, mark failed: the application stays the same. Restart and stop are desired states."""

    def test_a_declared_stream_is_submitted_reported_and_linked(self, clicked: Clicked) -> None:
        api = clicked.airflow.api
        with clicked.step(1):
            clicked.airflow.await_state(clicked.task, "deferred")
            clicked.await_commit(1)
            first = clicked.running(1)
            report = api.xcom_entry(clicked.task, "report")
            assert (report["application"], report["generation"]) == (first.id, 1)
            links = api.extra_links(clicked.task)
            assert str(links["YARN application"]).endswith(f"/cluster/app/{first.id}")
            assert links["YARN logs"]

    def test_the_triggerer_measures_commits_and_horizon(self, clicked: Clicked, minicluster: Minicluster) -> None:
        with clicked.step(2):
            await_that(lambda: clicked.metric("commit_age_seconds") is not None, "it is measured")
            horizon = clicked.metric("horizon_seconds")
            assert horizon is not None
            assert 0 < horizon < minicluster.plan.max_lifetime.total_seconds()

    def test_clearing_the_task_leaves_the_application_alone(self, clicked: Clicked) -> None:
        api, task = clicked.airflow.api, clicked.task
        with clicked.step(3):
            first = clicked.running(1)
            api.clear(task)
            await_that(lambda: api.task_instance(task).try_number > 1, "the cleared task runs again")
            clicked.airflow.await_state(task, "deferred")
            assert clicked.running(1) == first

    def test_marking_the_task_failed_leaves_the_application_alone(self, clicked: Clicked) -> None:
        api, task = clicked.airflow.api, clicked.task
        with clicked.step(4):
            first = clicked.running(1)
            api.mark(task, "failed")
            clicked.airflow.await_state(task, "failed")
            # Airflow loses a click that comes while its scheduler writes that the run has failed.
            await_that(lambda: api.dag_run_state(task.dag_id, task.run_id) == "failed", "the run has failed")
            assert clicked.running(1) == first

    def test_a_restart_by_the_form_is_carried_out_by_the_cleared_task(self, clicked: Clicked) -> None:
        with clicked.step(5):
            clicked.airflow.api.clear(clicked.task)
            clicked.airflow.await_state(clicked.task, "deferred")
            assert clicked.airflow.control("clicked", "restart", "a new jar") == "success"
            word = clicked.look().desired
            assert (word.by, word.reason, word.restart_up_to) == ("admin", "a new jar", 1)
            await_that(lambda: clicked.look().generation == 2, "the task restarts it")
            clicked.await_commit(2)
            assert [number for number, app in clicked.look().applications if app.alive] == [2]
            assert clicked.metric("restarts") == 1

    def test_a_stream_that_the_form_stopped_keeps_its_task_deferred(self, clicked: Clicked) -> None:
        """Its start would otherwise wait for the next run, and each run would do nothing."""
        with clicked.step(6):
            assert clicked.airflow.control("clicked", "stop", "the test is over") == "success"
            assert stopped(clicked.look()), "the control DAG's run ends when it has stopped"
            clicked.airflow.detach(clicked.task)
            ended = clicked.look().current
            assert ended is not None
            assert ended.succeeded

    def test_no_click_has_written_the_keytab(self, clicked: Clicked, minicluster: Minicluster) -> None:
        """Neither the log nor any file that Airflow wrote holds the keytab's bytes."""
        airflow, task = clicked.airflow, clicked.task
        with clicked.step(7):
            secret = minicluster.keytab("streamer").read_bytes()[-16:]
            written = [path for path in airflow.home.root.rglob("*") if path.is_file()]
            assert len(written) > 5
            assert [path for path in written if secret in path.read_bytes()] == []
            log = airflow.api.task_log(task, airflow.api.task_instance(task).try_number)
            assert json.dumps(secret.hex()) not in log


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
