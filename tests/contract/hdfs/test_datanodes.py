"""The DataNode: it alone knows the length of a file that is being written, and hands bytes over in three ways."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.leases import LeaseHdfsPool
from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.clients.hdfs.replicas import ReplicaLengths
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import HOME
from tests.differences import first_difference
from tests.live.odd_names import ODD_NAMES
from tests.live.recovering import paused
from tests.live.writers import Writer, leave_open

CLOSED = f"{HOME}/native-reads"
# More than two blocks of the minicluster, in lines that differ.
CONTENT = b"".join(b"%09d a line of a log\n" % number for number in range(300_000))


def by_rpc(session: LeaseSession) -> ReplicaLengths:
    """Return lengths by RPC alone: no WebHDFS server listens where they would be looked up next."""
    assert session.rpc
    nowhere = LeaseHdfsPool(("http://localhost:1",), session.identity, session.cluster.tls, 1)
    return ReplicaLengths(session.rpc, nowhere)


@pytest.fixture(scope="module")
def closed(owner: LeaseSession) -> str:
    owner.base.hdfs.write(CLOSED, CONTENT, overwrite=True, permission="600")
    return CLOSED


def test_readers_get_what_was_flushed_and_the_namenode_knows_a_first_part(
    owner: LeaseSession, client: Writer, folder: str
) -> None:
    """The NameNode learns of a block's first flush and of no later one."""
    path = f"{folder}/flushed"
    client.leave(path, 5000)
    client.write(path, 70_000)
    client.hflush(path)
    assert owner.rpc
    for (state,) in (owner.rpc.states([path]), owner.pool.states([path])):
        assert isinstance(state, FileState)
        assert (state.is_open, state.length, state.measured, state.owner) == (True, 5000, False, getuser())
        assert state.block is not None
        assert (state.block.length, state.block.complete, state.block.hosts) == (5000, False, ("localhost",))
        assert datetime.now(UTC) - (state.block.newest_report or state.modified) < timedelta(seconds=30)
    assert owner.pool.visible_lengths([path]) == [75_000]
    assert by_rpc(owner).visible_lengths([path]) == [75_000]


def test_rpc_and_http_tell_the_lengths_of_files_with_names_of_every_kind(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    """A DataNode's redirect may name another file, and each answer has its place."""
    paths = [f"{folder}/{name}" for name in ODD_NAMES]
    leave_open(minicluster, paths, 321)
    asked = [*paths[:3], f"{folder}/missing", *paths[3:]]
    for told in (owner.pool.visible_lengths(asked), by_rpc(owner).visible_lengths(asked)):
        assert isinstance(told.pop(3), NotFound)
        assert told == [321] * len(paths)


def test_measuring_by_http_makes_the_namenode_one_token_and_not_one_for_each(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    paths = [f"{folder}/{number}" for number in range(10)]
    leave_open(minicluster, paths, 100)
    before = _audited(minicluster, "getDelegationToken")
    assert owner.pool.visible_lengths(paths) == [100] * len(paths)
    assert 1 <= _audited(minicluster, "getDelegationToken") - before < len(paths)


def _audited(minicluster: Minicluster, command: str) -> int:
    logs = minicluster.event_logs()
    return sum(logs[f"{name}-audit"].read_text().count(f"cmd={command}\t") for name in ("nn1", "nn2"))


def test_a_closed_file_is_the_same_bytes_by_its_protocol_and_by_http(owner: LeaseSession, closed: str) -> None:
    natively = NativeReads(owner.cluster, owner.identity).read_part(closed, 0, len(CONTENT))
    assert first_difference(natively, CONTENT) == ""
    at = len(CONTENT) - 5_000_000
    assert first_difference(owner.base.hdfs.read_part(closed, at, 6_000_000), CONTENT[at:]) == ""


def test_what_is_not_read_natively_is_one_error_whatever_the_reason(
    minicluster: Minicluster, owner: LeaseSession, closed: str, tmp_path: Path
) -> None:
    watcher = Identity(minicluster.principal("watcher"), keytab=str(minicluster.keytab("watcher")))
    wrong = replace(owner.identity, keytab=watcher.keytab)
    nowhere = replace(owner.cluster, hadoop_conf_dir=str(tmp_path))
    cases = [
        (owner.cluster, owner.identity, f"{closed}-not"),
        (owner.cluster, watcher, closed),
        (owner.cluster, wrong, closed),
        (nowhere, owner.identity, closed),
    ]
    for cluster, identity, path in cases:
        with pytest.raises(Unavailable, match="hdfs-native failed") as caught:
            NativeReads(cluster, identity).read_part(path, 0, 10)
        assert caught.value.tried == f"read 10 bytes of {path}"
        assert caught.value.principal == str(identity)


def test_a_paused_datanode_leaves_a_length_unknown_and_ends_a_read(
    minicluster: Minicluster, owner: LeaseSession, client: Writer, folder: str, closed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By RPC, and then by HTTP."""
    # It never answers; how long the client waits for it does not matter here.
    monkeypatch.setattr("airflow_kstream.clients.hdfs.webhdfs.CONNECT_AND_READ_SECONDS", (5, 2))
    path = f"{folder}/behind"
    client.leave(path, 100)
    reads = NativeReads(owner.cluster, owner.identity, seconds=1.0)
    web = LeaseHdfsPool(owner.cluster.namenodes, owner.identity, owner.cluster.tls, 1)
    assert owner.rpc
    with closing(web), paused(minicluster, "datanode"):
        (length,) = ReplicaLengths(owner.rpc, web, (1, 1)).visible_lengths([path])
        assert isinstance(length, Unavailable)
        with pytest.raises(Unavailable, match="no answer within 1 s"):
            reads.read_part(closed, 0, 10)
    assert reads.read_part(closed, 0, 9) == CONTENT[:9]
    assert by_rpc(owner).visible_lengths([path]) == [100]
