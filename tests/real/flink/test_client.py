"""What Flink's client does when it is ended early, and what a job loses that is run without our settings."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.live.daemons import session_as
from tests.live.flink import (
    JOB_MANAGER,
    TASK_MANAGER,
    FlinkRunning,
    empty_the_nodes_cache,
    launch_token,
    pages_of,
    running,
    staging,
)
from tests.live.sleepers import sleeping
from tests.live.streams import await_that
from tests.real.flink.conftest import NewRun

# The queue has 14 GB.
TOO_MUCH = {"jobmanager.memory.process.size": "13g"}


@pytest.mark.parametrize(
    ("number", "state", "is_kept"),
    [(signal.SIGTERM, ApplicationState.KILLED, False), (signal.SIGKILL, ApplicationState.ACCEPTED, True)],
)
def test_a_client_that_waits_for_the_queue_withdraws_at_sigterm_alone(
    new_run: NewRun, session: ClusterSession, number: signal.Signals, state: ApplicationState, is_kept: bool
) -> None:
    run = new_run(f"waiting-{number.name.lower()}")
    with sleeping(session, "occupant", resource={"memory": 2048, "vCores": 1}), run.submission(TOO_MUCH) as client:
        try:
            await_that(lambda: accepted(session, run.tag), "it waits for the queue")
            client.send_signal(number)
            client.wait(60)
            (app,) = session.yarn.applications(run.tag)
            assert (app.state, bool(staging(session, app.id))) == (state, is_kept)
        finally:
            client.kill()
            for app in session.yarn.applications(run.tag):
                session.yarn.kill(app.id, "the test is over", timedelta(seconds=60))


def accepted(session: ClusterSession, tag: str) -> bool:
    return [app.state for app in session.yarn.applications(tag)] == [ApplicationState.ACCEPTED]


def test_a_cancelled_job_takes_its_checkpoints_along_unless_they_are_retained(
    new_run: NewRun, session: ClusterSession
) -> None:
    """The proxy lets one command through, since it is a GET: `yarn-cancel`, which needs no right of YARN's."""
    run = new_run("forgetful")
    forgetful = {"execution.checkpointing.externalized-checkpoint-retention": None}
    with running(session, run, forgetful) as living, closing(pages_of(session, living)) as pages:
        assert not pages.checkpointing(run.job).survives
        assert chk(session, run.checkpoints)
        with session_as(run.minicluster, "streamer") as http:
            assert http.get(f"{living.proxy}/jobs/{run.job}/yarn-cancel", timeout=60).status_code == 202
        await_that(lambda: not session.yarn.application(living.application).alive, "the cancelled application ends")
        assert session.yarn.application(living.application).final_status == "KILLED"
        assert chk(session, run.checkpoints) == set()


def chk(session: ClusterSession, folder: str) -> set[str]:
    return {name for name in session.hdfs.names(folder) if name.startswith("chk-")}


def test_without_checkpoints_of_its_own_a_job_has_nothing_to_go_on_from(
    new_run: NewRun, session: ClusterSession
) -> None:
    run = new_run("careless")
    with submitted(session, run.submit({"execution.checkpointing.interval": None})) as pages:
        await_that(lambda: pages.job(run.job).state == "RUNNING", "it runs")
        assert pages.checkpointing(run.job).interval is None
        assert session.hdfs.names(run.checkpoints) == frozenset()


@contextmanager
def submitted(session: ClusterSession, living: FlinkRunning) -> Iterator[FlinkPages]:
    try:
        with closing(pages_of(session, living)) as pages:
            yield pages
    finally:
        session.yarn.kill(living.application, "the test is over", timedelta(seconds=60))


def test_no_new_taskmanager_starts_once_the_launch_token_is_dead(
    new_run: NewRun, session: ClusterSession, flinks: Minicluster
) -> None:
    """The job goes on until it loses one: then YARN and Flink both call it running, and nothing of it runs."""
    with running(session, new_run("starving")) as living, closing(pages_of(session, living)) as pages:
        token = launch_token(living.place(JOB_MANAGER))
        dead = token.issued + flinks.plan.renew_interval
        await_that(lambda: datetime.now(UTC) > dead, "the launch token is dead")
        assert not pages.overview().starves
        assert launch_token(living.place(JOB_MANAGER)) == token
        empty_the_nodes_cache(flinks, living.application)
        (process,) = living.processes(TASK_MANAGER)
        process.kill()
        await_that(lambda: f"expected renewal time: {moment(dead)}" in living.log(), "YARN tells why none starts")
        assert pages.overview().starves
        assert session.yarn.application(living.application).state == ApplicationState.RUNNING


def moment(when: datetime) -> str:
    return f"{when.astimezone():%Y-%m-%d %H:%M:%S}"
