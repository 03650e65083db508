"""A woken task whose servers are silent: sockets that take a connection and never answer, as a frozen process does."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.errors import Unavailable
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.restart import reconcile
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.loopback.streams.test_round_requests import listing, state_dir
from tests.simulated.engine import FakeEngine
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import Answer, introduction, said, serving
from tests.simulated.yarn import TICKET_SPEC

MINUTE = timedelta(minutes=1).total_seconds()
SILENT = Answer(200, b"{}", drip=3600)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that is frozen: its kernel takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def reconciler(session: ClusterSession, *, patient: bool = False) -> Reconciler:
    engine = FakeEngine(session.hdfs, session.yarn)  # type: ignore[arg-type]  # asked for nothing
    return Reconciler(StreamRun(session, TICKET_SPEC, engine), tell=lambda line: None, patient=patient)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_silent_namenodes_have_less_than_a_minute_together(count: int) -> None:
    cluster = replace(CLUSTER, namenodes=("http://127.0.0.1:1",) * count)
    with open_session(cluster, cluster.watcher) as session:
        impatient = reconciler(session)
        assert impatient._longest_answer() * count < MINUTE
        assert 10 <= impatient._longest_answer() <= 20
        assert reconciler(session, patient=True)._longest_answer() > MINUTE


def test_three_silent_namenodes_end_a_woken_reconcile_soon(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual limit is 30 s for each; here, all of them have a second."""
    # Together they have fifty usually, which this would wait for.
    monkeypatch.setattr(reconcile, "_ALL_NAMENODES", 1.0)
    with ExitStack() as stack:
        more = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        others = [f"http://127.0.0.1:{one.getsockname()[1]}" for one in more]
        cluster = replace(CLUSTER, namenodes=(silent, *others))
        session = stack.enter_context(open_session(cluster, cluster.watcher))
        began = time.monotonic()
        with pytest.raises(Unavailable, match="not complete after"):
            reconciler(session).run()
        assert time.monotonic() - began < 30


def test_a_resourcemanager_that_falls_silent_ends_it_soon_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it is active, and then no more."""
    # The usual limit would make this a wait of twenty seconds.
    monkeypatch.setattr(reconcile, "_ONE_ANSWER", 0.3)
    namenode = {"": listing(), "op=GETHOMEDIRECTORY": said({"Path": "/user/streamer"}), **state_dir()}
    manager = {"/ws/v1/cluster/info": introduction(), "/ws/v1/cluster/apps": SILENT}
    with serving(namenode) as hdfs, serving(manager) as yarn:
        cluster = replace(CLUSTER, namenodes=(hdfs.address,), resourcemanagers=(yarn.address,))
        with open_session(cluster, cluster.watcher) as session:
            began = time.monotonic()
            with pytest.raises(Unavailable, match=f"{yarn.address}.*not complete after"):
                reconciler(session).run()
            assert time.monotonic() - began < 19
        assert hdfs.requests


def test_a_look_that_answered_leaves_the_next_ones_their_time(life: Life) -> None:
    impatient = Reconciler(life.run, tell=lambda line: None, patient=False)
    impatient.run()
    assert impatient._longest_answer() > MINUTE
