"""One life of a Flink stream by the product: its starts, its planned restart, its JobManager's death, its stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.contract import stop_marker, stopped_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import (
    FlinkStreamSpec,
    KeytabCredentials,
    ProxyUserCredentials,
    StreamCredentials,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import SubmitPolicy
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired, start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.flink import rows_of, staging
from tests.live.flink_streams import Stream, declared
from tests.live.sleepers import sleeping
from tests.live.streams import await_that, cluster, look


@pytest.fixture
def stream(
    flinks: Minicluster,
    session: ClusterSession,
    feature: Feature,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Stream]:
    keytab = KeytabCredentials(flinks.principal("streamer"), keytab=str(flinks.keytab("streamer")))
    jar = build_job(feature, tmp_path_factory.mktemp("jar") / "rows.jar")
    # Each test has a stream of its own, named by the third and the fourth word of its name.
    name = "-".join(request.function.__name__.split("_")[2:4])
    living = declared(flinks, session, feature, jar, keytab, name)
    try:
        yield living
    finally:
        living.end()


def test_a_stream_lives_through_restarts_and_a_death_and_loses_and_doubles_no_row(stream: Stream) -> None:
    with pytest.raises(Conflict, match="nobody said where its first generation starts"):
        stream.reconcile()
    start_from(stream.run, "a test", fresh=True)
    assert stream.reconcile().phase in {Phase.STARTING, Phase.RUNNING}
    stream.await_checkpoints(2)
    first = stream.claim

    request_restart(stream.run, "a test")
    stream.reconcile()
    stream.await_checkpoints(2)
    second = stream.claim
    assert second.start.resume is not None
    assert (second.generation, second.start.resume.made_by) == (2, 1)
    assert "/savepoints/" in second.start.resume.path
    assert second.start.resume.number > first.positions[stream.spec.checkpoints[0]].offset
    assert "stopped with savepoint" in "".join(stream.told)

    killed = stream.application
    stream.kill_job_manager()
    await_that(lambda: not stream.session.yarn.application(killed.id).alive, "YARN tells that it has ended")
    stream.reconcile()
    stream.await_checkpoints(2)
    third = stream.claim
    assert third.start.resume is not None
    assert (third.generation, third.start.resume.made_by) == (3, 2)
    assert "/chk-" in third.start.resume.path

    set_desired(stream.run, DesiredState.STOPPED, "a test")
    assert stream.reconcile().phase is Phase.STOPPED
    rows = rows_of(stream.session, stream.rows)
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) > 100
    assert staging(stream.session, killed.id) == frozenset()

    hdfs, savepoints = stream.session.hdfs, f"{stream.spec.checkpoints[0]}/savepoints"
    for dead in hdfs.listing(savepoints).entries:
        # They were closed before the next generation read where it was left.
        hdfs.change_mode(f"{savepoints}/{dead.name}", "755")
    hdfs.delete(savepoints, recursive=True)
    set_desired(stream.run, DesiredState.RUNNING, "a test")
    with pytest.raises(Conflict, match="older than it was"):
        stream.reconcile()


@pytest.mark.parametrize(
    ("who", "credentials"),
    [("streamer", TicketCredentials()), ("gateway", ProxyUserCredentials(getuser()))],
    ids=["ticket", "proxy-user"],
)
def test_a_job_without_a_keytab_is_submitted_and_followed_as_its_user(
    flinks: Minicluster,
    feature: Feature,
    tmp_path_factory: pytest.TempPathFactory,
    who: str,
    credentials: StreamCredentials,
) -> None:
    jar = build_job(feature, tmp_path_factory.mktemp("jar") / "rows.jar")
    with cluster(flinks, who) as found:
        spec = FlinkStreamSpec("any", credentials, "/jobs/any.jar", ("/any",))
        with open_session(found, identity_of(spec, found)) as session:
            stream = declared(flinks, session, feature, jar, credentials, credentials.mode)
            try:
                start_from(stream.run, "a test", fresh=True)
                stream.reconcile()
                stream.await_checkpoints(2)
                assert stream.application.user == getuser()
                request_restart(stream.run, "a test")
                stream.reconcile()
                stream.await_checkpoints(2)
                rows = rows_of(session, stream.rows)
                assert sorted(rows) == list(range(len(rows)))
                (token,) = (token for token in stream.claim.credentials.tokens or () if token.is_hdfs)
                # The ResourceManager's short name.
                assert token.renewer == "yarn"
            finally:
                stream.end()


class Enough(Exception):
    """What was waited for has been told."""


def test_a_submission_for_which_the_queue_has_no_room_is_withdrawn(stream: Stream) -> None:
    start_from(stream.run, "a test", fresh=True)
    stream.spec = replace(
        stream.spec,
        deploy=replace(stream.spec.deploy, jobmanager_memory="13g"),
        # The occupant's ApplicationMaster never registers, for which YARN ends it after a minute.
        submit=SubmitPolicy(timeout=timedelta(seconds=40)),
    )

    def tell(line: str) -> None:
        if line.startswith("withdrew"):
            raise Enough

    with sleeping(stream.session, "occupant", resource={"memory": 2048, "vCores": 1}), pytest.raises(Enough):
        Reconciler(stream.run, tell=tell).run()
    seen = look(stream.session, stream.spec)
    assert {stop_marker(1), stopped_marker(1)} <= seen.files
    assert stream.application.state is ApplicationState.KILLED
    assert staging(stream.session, stream.application.id) == frozenset()
