"""A job that somebody else submitted, adopted and restarted on a person's order: nothing of it is lost or doubled.

One whose checkpoints end with it is stopped with a savepoint that lies on HDFS, or left running.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.flink import JOB_MANAGER, TASK_MANAGER, empty_the_nodes_cache
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.orders.desired import request_restart
from tests.live.flink import FlinkRunning, await_checkpoints, launch_token, rows_of, running
from tests.live.flink_streams import Stream, declared
from tests.live.streams import await_that
from tests.real.flink.conftest import NewRun

LOST = {"execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION"}


def adopted(session: ClusterSession, feature: Feature, living: FlinkRunning, rest_ports: str | None = None) -> Stream:
    """Return the stream that has adopted the job, declared so that its successor goes on with the same rows."""
    run = living.run
    keytab = KeytabCredentials(run.minicluster.principal("streamer"), str(run.minicluster.keytab("streamer")))
    # Its own name has the feature at its end, as `declared` writes it.
    stream = declared(run.minicluster, session, feature, run.jar, keytab, run.name.removesuffix(f"-{feature}"))
    stream.spec = with_rest_ports(stream.spec, rest_ports)
    adopt(stream.run, living.application, tell=stream.told.append)
    return stream


def with_rest_ports(spec: FlinkStreamSpec, ports: str | None) -> FlinkStreamSpec:
    return replace(spec, deploy=replace(spec.deploy, rest_ports=ports))


def test_an_adopted_job_is_followed_from_its_newest_retained_checkpoint(
    new_run: NewRun, session: ClusterSession, feature: Feature
) -> None:
    with running(session, new_run("heir")) as living:
        stream = adopted(session, feature, living)
        try:
            request_restart(stream.run, "a test")
            stream.reconcile()
            assert session.yarn.application(living.application).state is ApplicationState.KILLED
            require_followed(stream, living, f"{living.run.checkpoints}/chk-")
        finally:
            stream.end()


def test_a_job_whose_checkpoints_end_with_it_ends_with_a_savepoint_or_not_at_all(
    new_run: NewRun, session: ClusterSession, feature: Feature
) -> None:
    with running(session, new_run("fragile"), LOST) as living:
        stream = adopted(session, feature, living)
        assert "do not survive it" in " ".join(stream.told)
        try:
            request_restart(stream.run, "a test")
            with pytest.raises(Conflict, match="left running"):
                stream.reconcile()
            await_checkpoints(living, 2)

            # What else can stop it has no place for the savepoint.
            savepoints = f"{living.run.home}/checkpoints/savepoints"
            session.hdfs.make_folder(savepoints, "555")
            stream.spec = with_rest_ports(stream.spec, "20000-30000")
            with pytest.raises(Conflict, match="left running") as refused:
                stream.reconcile()
            print(refused.value)
            await_checkpoints(living, 2)
            session.hdfs.change_mode(savepoints, "755")
            stream.reconcile()
            require_followed(stream, living, f"{savepoints}/{living.run.job}/savepoint-")
        finally:
            stream.end()


def test_a_job_whose_new_workers_have_a_dead_token_is_restarted(
    new_run: NewRun, session: ClusterSession, feature: Feature, flinks: Minicluster
) -> None:
    """Nobody is there: its task is woken, and looks until it has seen for itself that nothing works."""
    with running(session, new_run("stranded")) as living:
        stream = adopted(session, feature, living)
        try:
            dead = launch_token(living.place(JOB_MANAGER)).issued + flinks.plan.renew_interval
            await_that(lambda: datetime.now(UTC) > dead, "the launch token is dead")
            empty_the_nodes_cache(flinks.root, living.application)
            (process,) = living.processes(TASK_MANAGER)
            process.kill()
            await_that(lambda: "expected renewal time" in living.log(), "YARN tells why none starts")

            def restarted() -> bool:
                stream.reconcile()
                return "its new workers have a dead token" in " ".join(stream.told)

            await_that(restarted, "it is restarted, some time after its newest checkpoint", 300)
            require_followed(stream, living, f"{living.run.checkpoints}/chk-")
        finally:
            stream.end()


def require_followed(stream: Stream, living: FlinkRunning, left: str) -> None:
    """Require that the next generation began with what the job left, and that no row is lost or doubled."""
    stream.await_checkpoints(2)
    claim = stream.claim
    assert claim.generation == 2
    assert claim.start.resume is not None
    assert claim.start.resume.path.startswith(left), claim.start.resume
    assert claim.start.resume.made_by == 1
    rows = rows_of(stream.session, stream.rows)
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) > 100
