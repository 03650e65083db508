"""The means of ending a generation, when the ResourceManager refuses or breaks one of them.

A server on loopback plays the ResourceManager: a real one can't be told to answer so.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.clients.yarn_rpc import ResourceManagerRpc
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.stream_policies import StopPolicy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.restart.stop import stop
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.strange_servers import HTML, Answer, introduction, said, serving
from tests.simulated.yarn import START, TICKET_SPEC

APP = "application_1_0001"
SPEC = replace(TICKET_SPEC, checkpoints=(), stop=StopPolicy(signal_grace=timedelta(), kill_wait=timedelta(seconds=5)))
ABSENT = {"RemoteException": {"exception": "YarnException", "message": "Trying to signal an absent container"}}


@pytest.mark.parametrize(
    "answer",
    [said(ABSENT, 500), Answer(405, HTML, "text/html"), Answer(404, HTML, "text/html"), said({}, 403), said({}, 503)],
    ids=["absent container", "405", "404", "403", "503"],
)
@pytest.mark.parametrize("refused", ["/signal/", f"/apps/{APP}/appattempts"], ids=["signal", "attempts"])
def test_a_signal_that_fails_is_followed_by_the_kill(answer: Answer, refused: str) -> None:
    script = {
        "/info": introduction(),
        f"/apps/{APP}/appattempts": said({"appAttempts": {"appAttempt": [{"id": 1, "containerId": "container_1"}]}}),
        "/signal/": said({}),
        f"/apps/{APP}/state": said({"state": "KILLED"}),
        f"/apps/{APP}": said({"app": {"id": APP, "state": "KILLED"}}),
        refused: answer,
    }
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        session = ClusterSession(
            CLUSTER, CLUSTER.watcher, cast(Hdfs, SimHdfs(SimClock())), yarn, KafkaEnds(CLUSTER.watcher)
        )
        ended = stop(StreamRun(session, SPEC, SparkEngine()), Stop(1, APP, "a test", preflight=False))
        yarn.close()
    assert ended
    assert ended.means == "it was killed"
    assert any(request.startswith("PUT") for request in server.requests)


def test_a_stop_is_marked_before_anything_is_done_to_the_application() -> None:
    """From then on every supervisor finishes it."""
    script = {
        "/info": introduction(),
        f"/apps/{APP}/state": said({"state": "KILLED"}),
        f"/apps/{APP}": said({"app": {"id": APP, "state": "KILLED"}}),
    }
    seen: list[frozenset[str]] = []
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        session = ClusterSession(
            CLUSTER, CLUSTER.watcher, cast(Hdfs, SimHdfs(SimClock())), yarn, KafkaEnds(CLUSTER.watcher)
        )
        run = StreamRun(session, SPEC, SparkEngine())
        stop(run, Stop(1, APP, "a test", preflight=False), lambda: seen.append(run.folder.names()))
        yarn.close()
    assert seen[0] == {stop_marker(1)}


def test_a_driver_gets_no_sigterm_once_the_cluster_is_frozen() -> None:
    """Its marker stands: it may still stop by itself."""
    script = {"/info": introduction(), f"/apps/{APP}": said({"app": {"id": APP, "state": "RUNNING"}})}
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        session = ClusterSession(
            CLUSTER, CLUSTER.watcher, cast(Hdfs, SimHdfs(SimClock())), yarn, KafkaEnds(CLUSTER.watcher)
        )
        step = Stop(1, APP, "a test", preflight=False)
        assert SparkEngine().stop_gracefully(session, SPEC, step, lambda: False) is None
        yarn.close()
    assert server.requests == []


@pytest.mark.parametrize(("answer", "means"), [(said({}), ["POST"]), (said(ABSENT, 500), ["POST", "PUT"])])
def test_where_containers_run_is_noted_right_before_the_signal_and_the_kill(answer: Answer, means: list[str]) -> None:
    """The graceful part may take minutes, in which executors come and go."""
    script = {
        "/info": introduction(),
        f"/apps/{APP}/appattempts": said({"appAttempts": {"appAttempt": [{"id": 1, "containerId": "container_1"}]}}),
        "/signal/": answer,
        f"/apps/{APP}/state": said({"state": "KILLED"}),
        f"/apps/{APP}": said({"app": {"id": APP, "state": "KILLED"}}),
    }
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        session = ClusterSession(
            CLUSTER, CLUSTER.watcher, cast(Hdfs, SimHdfs(SimClock())), yarn, KafkaEnds(CLUSTER.watcher)
        )
        noted: list[int] = []
        step = Stop(1, APP, "a test", preflight=False)
        stop(StreamRun(session, SPEC, SparkEngine()), step, lambda: noted.append(len(server.requests)))
        yarn.close()
    verbs = [request.partition(" ")[0] for request in server.requests]
    assert [next(verb for verb in verbs[at:] if verb != "GET") for at in noted] == means


def test_a_driver_without_the_helper_gets_its_sigterm_between_two_batches(life: Life) -> None:
    planned = Checkpoint("/data/orders", "q", {7: START}, {6: START})
    events: list[str] = []

    class Hdfs(SimHdfs):
        def checkpoint(self, path: str) -> Checkpoint:
            events.append("a look")
            return replace(planned, commits={7: START}) if len(events) == 3 else planned

    class Yarn(SimYarn):
        def signal_driver(self, application_id: str) -> None:
            events.append("the signal")

    spec = replace(SPEC, checkpoints=(planned.path,))
    session = session_of(Hdfs(life.clock), Yarn(life.clock))
    SparkEngine().stop_gracefully(session, spec, Stop(1, APP, "a test", preflight=False), lambda: True)
    assert events == [*["a look"] * 3, "the signal"], "its batch was committed before"


@pytest.mark.parametrize(("newest", "waited"), [("container_1", 60), ("container_2", 5), (None, 5)])
def test_another_attempt_after_the_sigterm_is_killed_before_it_works(
    life: Life, newest: str | None, waited: int
) -> None:
    """YARN answers the end of a driver with the next attempt, where it has any left."""

    class Yarn(SimYarn):
        def am_container(self, application_id: str) -> str | None:
            return newest

        def signal_driver(self, application_id: str) -> str:
            return "container_1"

    yarn = Yarn(life.clock)
    app = yarn.start(frozenset({"kstream"})).id
    spec, began = replace(TICKET_SPEC, checkpoints=()), life.clock.monotonic()
    step = Stop(1, app, "a test", preflight=False)
    assert SparkEngine().stop_gracefully(session_of(SimHdfs(life.clock), yarn), spec, step, lambda: True) is None
    took = life.clock.monotonic() - began
    assert (took >= waited) if newest == "container_1" else (took < waited)


STATIC_USER = {
    "RemoteException": {
        "exception": "ForbiddenException",
        "message": "java.lang.Exception: The default static user cannot carry out this operation.",
    }
}
ACLS = {"RemoteException": {"exception": "ForbiddenException", "message": "User ada cannot perform operation MODIFY"}}


class Rpc(ResourceManagerRpc):
    """The RPC of a ResourceManager, simulated: a real one begins with a Kerberos login. tests/contract has that."""

    servers = "rm:8032"

    def __init__(self, refusal: KstreamError | None = None) -> None:
        self.commands: list[str] = []
        self.refusal = refusal

    def prove(self) -> None:
        if self.refusal:
            raise self.refusal

    def kill(self, application_id: str, diagnostics: str) -> None:
        self.commands.append(f"kill {application_id}: {diagnostics}")

    def shut_down(self, container_id: str) -> None:
        self.commands.append(f"shut down {container_id}")

    def close(self) -> None:
        self.commands.append("close")


@pytest.mark.parametrize(
    "refusal",
    [
        said(STATIC_USER, 403),
        # As Hadoop 2 says it.
        Answer(403, b"The default static user cannot carry out this operation.", "application/json"),
        Answer(404, HTML, "text/html"),
    ],
)
def test_commands_go_over_rpc_where_the_web_server_wants_no_proof_of_who_asks(refusal: Answer) -> None:
    """Many distributions leave HTTP authentication off when Kerberos is switched on."""
    script = {
        "/info": introduction(),
        f"/apps/{APP}/appattempts": said({"appAttempts": {"appAttempt": [{"id": 1, "containerId": "container_1"}]}}),
        "/signal/": refusal,
        f"/apps/{APP}/state": refusal,
        f"/apps/{APP}": said({"app": {"id": APP, "state": "KILLED"}}),
    }
    rpc = Rpc()
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls(), lambda: rpc)
        assert yarn.signal_driver(APP)
        assert yarn.kill(APP, "a test", timedelta(seconds=5)).id == APP
        yarn.close()
    assert rpc.commands == ["shut down container_1", f"kill {APP}: a test", "close"]


def test_what_yarn_itself_refuses_stays_refused() -> None:
    script = {"/info": introduction(), f"/apps/{APP}/state": said(ACLS, 403)}
    rpc = Rpc()
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls(), lambda: rpc)
        with pytest.raises(Denied, match="cannot perform operation MODIFY"):
            yarn.kill(APP, "a test", timedelta(seconds=5))
        yarn.close()
    assert rpc.commands == []


def test_a_connection_that_knows_no_rpc_says_why_nobody_stops_the_application() -> None:
    script = {"/info": introduction(), f"/apps/{APP}/state": said(STATIC_USER, 403)}
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        with pytest.raises(Denied, match=r"static user .*its RPC can't be used: the connection has no hadoop_conf_dir"):
            yarn.kill(APP, "a test", timedelta(seconds=5))
        yarn.close()


@pytest.mark.parametrize(
    ("refusal", "error"), [(None, None), (Denied("not you"), Denied), (Unavailable("it is away"), Unavailable)]
)
def test_whether_anybody_stops_applications_is_known_before_it_is_needed(
    refusal: KstreamError | None, error: type[KstreamError] | None
) -> None:
    with serving({"/info": introduction()}) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls(), lambda: Rpc(refusal))
        if error is None:
            assert yarn.way_to_stop().startswith(
                "over the RPC of rm:8032, because its web server wants no proof of who asks"
            )
        else:
            with pytest.raises(error, match=r"its web server wants no proof of who asks .* its RPC can't be used"):
                yarn.way_to_stop()
        yarn.close()
