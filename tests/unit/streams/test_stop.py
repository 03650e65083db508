"""The means of ending a generation, when the ResourceManager refuses or breaks one of them.

A server on loopback plays the ResourceManager: a real one can't be told to answer so.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.plan import Stop
from airflow_kstream.model.stream_policies import StopPolicy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.spark_engine import SparkEngine
from airflow_kstream.supervise.streams.stop import stop
from tests.unit.clients.strange_servers import HTML, Answer, introduction, said, serving
from tests.unit.simulated_yarn import TICKET_SPEC
from tests.unit.streams.simulated_servers import CLUSTER, SimClock, SimHdfs

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
        session = ClusterSession(CLUSTER, CLUSTER.watcher, cast(Hdfs, SimHdfs(SimClock())), yarn)
        ended = stop(StreamRun(session, SPEC, SparkEngine()), Stop(1, APP, "a test", preflight=False))
        yarn.close()
    assert ended
    assert ended.means == "it was killed"
    assert any(request.startswith("PUT") for request in server.requests)


def test_a_driver_gets_no_sigterm_once_the_cluster_is_frozen() -> None:
    """Its marker stands: it may still stop by itself."""
    script = {"/info": introduction(), f"/apps/{APP}": said({"app": {"id": APP, "state": "RUNNING"}})}
    with serving(script) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        session = ClusterSession(CLUSTER, CLUSTER.watcher, cast(Hdfs, SimHdfs(SimClock())), yarn)
        step = Stop(1, APP, "a test", preflight=False)
        assert SparkEngine().stop_gracefully(session, SPEC, step, lambda: False) is None
        yarn.close()
    assert server.requests == []
