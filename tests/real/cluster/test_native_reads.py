"""Parts of files on HDFS, read natively: the same bytes as over WebHDFS, and our errors for what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.native_reads import NativeReads
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import CredentialError, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.identity import Identity
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.triage.aggregated_log import opened_log, reads_of
from tests.live.streams import cluster

PATH = f"/user/{getuser()}/native-reads"
# More than two blocks of the minicluster, in lines that differ.
CONTENT = b"".join(b"%09d a line of a log\n" % number for number in range(300_000))


@pytest.fixture(scope="module")
def session(minicluster: Minicluster) -> Iterator[ClusterSession]:
    with cluster(minicluster) as opened:
        streamer = Identity(minicluster.principal("streamer"), keytab=str(minicluster.keytab("streamer")))
        with open_session(opened, streamer) as session:
            session.hdfs.write(PATH, CONTENT.decode(), overwrite=True, permission="600")
            yield session


def whole(session: ClusterSession) -> bytes:
    with opened_log(reads_of(session), PATH, len(CONTENT)) as read_at:
        return b"".join(read_at(at, 1_000_000) for at in range(0, len(CONTENT), 1_000_000))


def test_both_ways_read_the_same_bytes(session: ClusterSession) -> None:
    nowhere = replace(session, hdfs=Hdfs(("http://localhost:1",), session.identity, Tls()))
    with opened_log(reads_of(nowhere), PATH, len(CONTENT)) as read_natively:
        assert read_natively(0, len(CONTENT)) == CONTENT
    assert whole(replace(session, cluster=replace(session.cluster, hadoop_conf_dir=None))) == CONTENT


def test_a_conf_folder_that_leads_nowhere_leaves_webhdfs(session: ClusterSession, tmp_path: Path) -> None:
    assert whole(replace(session, cluster=replace(session.cluster, hadoop_conf_dir=str(tmp_path)))) == CONTENT


def test_refusals_are_the_errors_of_every_client(minicluster: Minicluster, session: ClusterSession) -> None:
    watcher = Identity(minicluster.principal("watcher"), keytab=str(minicluster.keytab("watcher")))
    wrong = replace(session.identity, keytab=watcher.keytab)
    cases: list[tuple[Identity, str, type[KstreamError]]] = [
        (session.identity, f"{PATH}-not", NotFound),
        (watcher, PATH, Denied),
        (wrong, PATH, CredentialError),
    ]
    for identity, path, error in cases:
        with pytest.raises(error) as caught:
            NativeReads(session.cluster, identity).read_part(path, 0, 10)
        assert caught.value.tried == f"read 10 bytes of {path}"
        assert caught.value.principal == str(identity)


def test_a_silent_datanode_ends_a_read(minicluster: Minicluster, session: ClusterSession) -> None:
    reads = NativeReads(session.cluster, session.identity, seconds=1.0)
    minicluster.pause("datanode")
    try:
        with pytest.raises(Unavailable, match="no answer within 1 s"):
            reads.read_part(PATH, 0, 10)
    finally:
        minicluster.resume("datanode")
    assert reads.read_part(PATH, 0, 9) == CONTENT[:9]
