"""Commands of this process that speak to the servers of a simulated life."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_kstream.cli import state, stream_freeze, stream_status, streams
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder import declared_copies
from airflow_kstream.supervise.streams.look import status
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders import desired
from tests.simulated.life import Life
from tests.simulated.tenants import Tenant


@pytest.fixture
def served(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of this process speak to the life's servers, and watch its engine."""
    logged_in = life.run.session.identity

    @contextmanager
    def open_session(cluster: Cluster, identity: Identity) -> Iterator[ClusterSession]:
        same = (identity.principal, identity.do_as) == (logged_in.principal, logged_in.do_as)
        yield life.run.session if same else Tenant(life).session(identity)

    for module in (desired, declared_copies, state, stream_freeze, stream_status, streams):
        # A command is given words alone, and a run the stream's own session: it opens another one itself.
        monkeypatch.setattr(module, "open_session", open_session)
    for module in (desired, status):
        # Declarations name no engine, and Spark's is the only one that is shipped.
        monkeypatch.setattr(module, "Watch", lambda session, *_, **__: Watch(session, lambda spec: life.engine))
