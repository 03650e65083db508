"""The NameNode's fsck: how it tells of open files, among all others that it walks past."""

from __future__ import annotations

import pytest
from hdfs_native import Client

from airflow_kstream.clients.hdfs.fsck import open_files_by_fsck
from airflow_kstream.clients.hdfs.native import native_client
from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import HOME
from tests.live.odd_names import ODD_NAMES
from tests.live.recovering import standby_first
from tests.live.writers import leave_open, make_closed, native_writer
from tests.live.writers.hadoop_says import ask

FOLDER = f"{HOME}/fsck"
BESIDE = f"{FOLDER}-beside"
ODD = [f"{FOLDER}/odd/{name}" for name in ODD_NAMES]
# fsck shows a dot for each, and a newline after a hundred.
CLOSED = [f"{FOLDER}/closed/{number}" for number in range(120)]


@pytest.fixture(scope="module", autouse=True)
def walked(minicluster: Minicluster, owner: LeaseSession) -> None:
    """Open files of odd names among closed ones, and another folder whose name begins the same."""
    leave_open(minicluster, ODD, 5000)
    make_closed(minicluster, CLOSED)
    owner.base.hdfs.write(f"{BESIDE}/private", "private", permission="000")


@pytest.fixture
def natively(owner: LeaseSession) -> Client:
    return native_client(owner.cluster, owner.identity)


def fsck(session: LeaseSession, path: str, identity: Identity | None = None) -> list[str]:
    cluster = session.cluster
    found = open_files_by_fsck(cluster.namenodes, identity or session.identity, cluster.tls, path)
    return sorted(file.path for file in found)


def known_as(minicluster: Minicluster, who: str, do_as: str | None = None) -> Identity:
    return Identity(minicluster.principal(who), keytab=str(minicluster.keytab(who)), do_as=do_as)


def test_it_finds_every_open_file_below_a_folder_and_no_other(owner: LeaseSession, superuser: LeaseSession) -> None:
    assert fsck(owner, FOLDER) == sorted(ODD)
    assert set(fsck(superuser, "/")) >= set(ODD)


def test_it_finds_each_file_by_its_own_odd_name(owner: LeaseSession) -> None:
    assert {path: fsck(owner, path) for path in ODD} == {path: [path] for path in ODD}


def test_it_knows_no_closed_file_and_says_what_is_missing(owner: LeaseSession) -> None:
    assert fsck(owner, CLOSED[0]) == []
    with pytest.raises(NotFound):
        fsck(owner, f"{FOLDER}/missing")


def test_open_files_stand_among_its_reports_of_damaged_ones(
    minicluster: Minicluster, owner: LeaseSession, natively: Client, folder: str
) -> None:
    """Its reports of files that lack replicas stand before, between and after the open ones."""
    paths = [f"{folder}/{name}" for name in ("b", "d\n/d. 5 bytes, 1 block(s)", "f")]
    for name in "aceg":
        owner.base.hdfs.write(f"{folder}/{name}", "closed")
    natively.set_replication(f"{folder}/a", 3)
    with native_writer(minicluster, paths, 5000):
        for name in "ceg":
            natively.set_replication(f"{folder}/{name}", 3)
        assert _said(minicluster, owner, folder).count("Under replicated BP-") == 4
        assert fsck(owner, folder) == sorted(paths)


def _said(minicluster: Minicluster, session: LeaseSession, path: str) -> str:
    _, active = standby_first(minicluster, minicluster.namenodes)
    with kerberos_session(session.identity, session.cluster.tls) as http:
        return http.get(f"{active}/fsck", params={"path": path, "openforwrite": "1"}, timeout=60).text


def test_an_erasure_coded_file_is_in_the_walk_and_is_known_as_such(
    minicluster: Minicluster, owner: LeaseSession, natively: Client, folder: str
) -> None:
    policy = {"ecpolicy": "XOR-2-1-1024k"}
    ask(minicluster, "PUT", "/", "hdfs", op="ENABLEECPOLICY", **policy)
    ask(minicluster, "PUT", folder, "hdfs", op="SETECPOLICY", **policy)
    assert owner.rpc
    # The tests' writer has blocks smaller than a cell of the policy.
    with natively.create(f"{folder}/open"):
        assert fsck(owner, folder) == [f"{folder}/open"]
        for client in (owner.rpc, owner.pool):
            striped, plain = client.states([f"{folder}/open", ODD[0]])
            assert isinstance(striped, FileState)
            assert isinstance(plain, FileState)
            assert (striped.erasure_coded, plain.erasure_coded) == (True, False)


def test_it_ends_at_what_the_user_may_not_read(minicluster: Minicluster, owner: LeaseSession) -> None:
    with pytest.raises(Denied, match="Permission denied: user=watcher, access=READ_EXECUTE"):
        fsck(owner, "/user", known_as(minicluster, "watcher"))
    with pytest.raises(Denied, match=r"access=READ, .*-beside/private"):
        fsck(owner, BESIDE)


def test_it_walks_as_the_user_whom_a_gateway_may_impersonate(minicluster: Minicluster, owner: LeaseSession) -> None:
    user = owner.base.hdfs.user()
    assert fsck(owner, FOLDER, known_as(minicluster, "gateway", user)) == sorted(ODD)
    with pytest.raises(Denied, match="not allowed to impersonate"):
        fsck(owner, FOLDER, known_as(minicluster, "watcher", user))


def test_a_standby_refuses_to_walk_and_says_so(minicluster: Minicluster, owner: LeaseSession) -> None:
    standby, active = standby_first(minicluster, minicluster.namenodes)
    identity, tls = owner.identity, owner.cluster.tls
    assert len(list(open_files_by_fsck((standby, active), identity, tls, FOLDER))) == len(ODD)
    with pytest.raises(Unavailable, match="it is not the active one; http://localhost:1: "):
        list(open_files_by_fsck((standby, "http://localhost:1"), identity, tls, FOLDER))
