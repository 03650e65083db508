"""A stream's life in a running Airflow, on the real cluster, as a person sees and clicks it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.policy.streams.pulse.heartbeat import verified
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.airflow import CONNECTION, LiveAirflow, live_airflow
from tests.live.airflow_api import TaskRef
from tests.live.streams import await_that, look, rate_stream, reconciler, stopped


@dataclass(frozen=True)
class Clicked:
    """A declared stream, the task that keeps it, and our own look at it past Airflow."""

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
        await_that(
            lambda: (seen := self.look()).generation == generation and verified(seen),
            f"generation {generation} commits",
        )

    def metric(self, name: str) -> float | None:
        return self.airflow.metrics.value(f"airflow.kstream.{CONNECTION}.clicked.{name}")


@pytest.fixture(scope="module")
def airflow(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    """An Airflow that is gone before the next story begins."""
    with live_airflow(minicluster, tmp_path_factory.mktemp("airflow")) as airflow:
        yield airflow


@pytest.fixture
def clicked(minicluster: Minicluster, airflow: LiveAirflow) -> Iterator[Clicked]:
    keytab = KeytabCredentials(minicluster.principal("streamer"), str(minicluster.keytab("streamer")))
    spec = rate_stream("clicked", keytab)
    task = airflow.declare(spec)
    with reconciler(minicluster, spec) as supervisor:
        yield Clicked(airflow, task, supervisor)
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")


def test_clicks_restart_and_stop_a_stream_only_where_they_say_so(clicked: Clicked) -> None:
    """Declared, it is submitted, reported, linked and measured; clear and mark failed leave its application alone; the
    control form restarts and stops it. The run's last part searches all that Airflow kept of it for its keytab.
    """
    first = submitted(clicked)
    cleared_and_marked_failed(clicked)
    assert clicked.running(1) == first
    restarted_by_the_form(clicked)
    stopped_by_the_form(clicked)


def submitted(clicked: Clicked) -> Application:
    clicked.airflow.await_state(clicked.task, "deferred")
    clicked.await_commit(1)
    first, api = clicked.running(1), clicked.airflow.api
    report = api.xcom_entry(clicked.task, "report")
    assert (report["application"], report["generation"]) == (first.id, 1)
    links = api.extra_links(clicked.task)
    assert str(links["YARN application"]).endswith(f"/cluster/app/{first.id}")
    assert links["YARN logs"]
    await_that(lambda: clicked.metric("commit_age_seconds") is not None, "its triggerer measures it")
    return first


def cleared_and_marked_failed(clicked: Clicked) -> None:
    api, task = clicked.airflow.api, clicked.task
    api.clear(task)
    await_that(lambda: api.task_instance(task).try_number > 1, "the cleared task runs again")
    clicked.airflow.await_state(task, "deferred")
    api.mark(task, "failed")
    clicked.airflow.await_state(task, "failed")
    # Airflow loses a click that comes while its scheduler writes that the run has failed.
    await_that(lambda: api.dag_run_state(task.dag_id, task.run_id) == "failed", "the run has failed")


def restarted_by_the_form(clicked: Clicked) -> None:
    clicked.airflow.api.clear(clicked.task)
    clicked.airflow.await_state(clicked.task, "deferred")
    assert clicked.airflow.control("clicked", "restart", "a new jar") == "success"
    word = clicked.look().desired
    assert (word.by, word.reason, word.restart_up_to) == ("admin", "a new jar", 1)
    clicked.await_commit(2)
    assert [number for number, app in clicked.look().applications if app.alive] == [2]
    assert clicked.metric("restarts") == 1


def stopped_by_the_form(clicked: Clicked) -> None:
    """The task stays deferred: its start would otherwise wait for the next run, and each run would do nothing."""
    assert clicked.airflow.control("clicked", "stop", "the test is over") == "success"
    assert stopped(clicked.look()), "the control DAG's run ends when it has stopped"
    clicked.airflow.detach(clicked.task)
    ended = clicked.look().current
    assert ended is not None
    assert ended.succeeded


@pytest.mark.parametrize("program", ["airflow_kstream.cli", "airflow kstream"])
def test_a_connection_that_was_made_in_airflow_is_found_at_a_terminal(airflow: LiveAirflow, program: str) -> None:
    """It lies in Airflow's database, which Airflow opens to its own programs alone."""
    command = [sys.executable, "-m", *program.split(), "connection", "check", "--cluster", CONNECTION]
    done = subprocess.run(command, env=airflow.home.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "active NameNode" in done.stdout
