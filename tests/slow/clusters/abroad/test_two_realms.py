"""One process, two clusters in two realms, at the same time and without any ambient ticket cache."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from getpass import getuser
from pathlib import Path

import gssapi
import pytest

from airflow_kstream.clients.hdfs.namenode import namenode_rpc
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.clusters.connection import cluster_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.doctor.connection import check_connection
from tests.live.streams import fields

pytestmark = pytest.mark.clusters

ROUNDS = 10
HOME = f"/user/{getuser()}"


@pytest.fixture
def both(
    minicluster: Minicluster, abroad: Minicluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ClusterSession, ClusterSession]]:
    """Sessions at both, as principals of the same name; the process's own environment names neither realm."""
    monkeypatch.delenv("KRB5_CONFIG")
    with ExitStack() as opened:
        home, away = (
            opened.enter_context(cluster_of(up.realm, fields(up, "streamer"))) for up in (minicluster, abroad)
        )
        yield (
            opened.enter_context(open_session(home, home.watcher)),
            opened.enter_context(open_session(away, away.watcher)),
        )


def test_each_connection_passes_every_step_of_its_check(both: tuple[ClusterSession, ClusterSession]) -> None:
    for session in both:
        failed = [step for step in check_connection(session.cluster) if not step.passed]
        assert not failed


def test_requests_to_both_clusters_alternate_and_each_sees_its_own_principal(
    both: tuple[ClusterSession, ClusterSession],
) -> None:
    home, away = both
    for number in range(ROUNDS):
        for session in both:
            session.hdfs.write(f"{HOME}/two-realms-{number}", session.identity.principal, overwrite=True)
            session.yarn.applications("kstream")
    assert home.hdfs.read(f"{HOME}/two-realms-0") == "streamer@KSTREAM.TEST"
    assert away.hdfs.read(f"{HOME}/two-realms-0") == "streamer@ABROAD.TEST"


def test_threads_log_in_to_both_at_once(both: tuple[ClusterSession, ClusterSession], tmp_path: Path) -> None:
    def login(number: int) -> str:
        identity = both[number % 2].identity
        cache = tmp_path / f"cache-{number}"
        tickets.acquire(identity, cache)
        with closing(namenode_rpc(both[number % 2].cluster, identity)) as namenode:
            namenode.closed([f"{HOME}/two-realms"])
        name = gssapi.Credentials(usage="initiate", store={"ccache": f"FILE:{cache}"}).name
        return str(name)

    with ThreadPoolExecutor(4) as threads:
        logins = list(threads.map(login, range(ROUNDS)))
    assert logins == [both[number % 2].identity.principal for number in range(ROUNDS)]


def test_a_principal_of_one_realm_is_a_stranger_to_the_other_and_told_so(
    both: tuple[ClusterSession, ClusterSession],
) -> None:
    home, away = both
    with open_session(away.cluster, home.identity) as stranger, pytest.raises(KstreamError) as refused:
        stranger.hdfs.status("/")
    assert not refused.value.retryable
    assert "streamer@KSTREAM.TEST" in str(refused.value)
