"""Open files as the NameNodes report them by RPC and by fsck: permissions, odd names, and servers in trouble."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from getpass import getuser
from itertools import islice

import pytest
from hdfs_native import Client

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.fsck import open_files_by_fsck
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc, namenode_rpc
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.open_file import FileState
from tests.live.odd_names import ODD_NAMES
from tests.live.streams import await_that, cluster
from tests.live.writers import native_writer

FOLDER = f"/user/{getuser()}/open-files"
# More than the NameNode returns at a time (dfs.namenode.list.openfiles.num.responses).
MANY = [f"{FOLDER}/many/{number}" for number in range(1100)]
ODD = [f"{FOLDER}/odd/{name}" for name in ODD_NAMES]
SIZE = 5000


def identity(minicluster: Minicluster, who: str, do_as: str | None = None) -> Identity:
    return Identity(minicluster.principal(who), keytab=str(minicluster.keytab(who)), do_as=do_as)


@contextmanager
def rpc(minicluster: Minicluster, who: str = "hdfs", do_as: str | None = None) -> Iterator[NameNodeRpc]:
    with (
        cluster(minicluster, who) as found,
        closing(namenode_rpc(found, identity(minicluster, who, do_as))) as namenode,
    ):
        yield namenode


@contextmanager
def impatient(minicluster: Minicluster, *addresses: str) -> Iterator[NameNodeRpc]:
    """Connect as the superuser, with a NameNode counted as frozen after seconds instead of half a minute."""
    conf = HadoopConf(str(minicluster.conf_dir))
    superuser, where = identity(minicluster, "hdfs"), addresses or conf.namenode_rpcs()
    with closing(NameNodeRpc(where, conf.namenode_principal, superuser, seconds=(5, 10))) as namenode:
        yield namenode


def native_client(minicluster: Minicluster) -> Client:
    principal, keytab = minicluster.principal("streamer"), str(minicluster.keytab("streamer"))
    return Client(config_dir=str(minicluster.conf_dir), kerberos_principal=principal, kerberos_keytab=keytab)


def fsck(minicluster: Minicluster, path: str, who: str = "hdfs", do_as: str | None = None) -> list[str]:
    return [
        file.path for file in open_files_by_fsck(minicluster.namenodes, identity(minicluster, who, do_as), Tls(), path)
    ]


@pytest.fixture(scope="module")
def hdfs(minicluster: Minicluster) -> Iterator[Hdfs]:
    with closing(Hdfs(minicluster.namenodes, identity(minicluster, "streamer"), Tls())) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def opened(minicluster: Minicluster, hdfs: Hdfs) -> Iterator[None]:
    """A writer's open files: many empty ones, some of odd names with bytes in them; and a closed one."""
    with native_writer(minicluster, MANY, 0), native_writer(minicluster, ODD, SIZE):
        hdfs.write(f"{FOLDER}/closed", "closed")
        # Another folder, whose name begins the same.
        hdfs.write(f"{FOLDER}-beside/private", "private", permission="000")
        yield
    for name in (FOLDER, f"{FOLDER}-beside"):
        hdfs.delete(name, recursive=True)


@pytest.fixture
def standby_first(minicluster: Minicluster) -> tuple[str, ...]:
    """Return the NameNodes' RPC addresses."""
    addresses = HadoopConf(str(minicluster.conf_dir)).namenode_rpcs()
    return addresses if minicluster.active_namenode() == "nn2" else tuple(reversed(addresses))


def test_the_superuser_gets_every_open_file_once_with_its_holder(minicluster: Minicluster) -> None:
    with rpc(minicluster) as namenode:
        found = list(namenode.open_files(FOLDER))
    assert sorted(file.path for file in found) == sorted(MANY + ODD)
    assert len({file.holder for file in found}) == 2
    assert {file.host for file in found} == {"127.0.0.1"}
    assert [file.file_id for file in found] == sorted({file.file_id or 0 for file in found})


def test_a_listing_holds_what_is_below_the_path_and_nothing_beside_it(minicluster: Minicluster) -> None:
    with rpc(minicluster) as namenode:
        assert {file.path for file in namenode.open_files("/")} >= set(MANY + ODD)
        assert {file.path for file in namenode.open_files(f"{FOLDER}/odd/")} == set(ODD)
        assert [file.path for file in namenode.open_files(MANY[7])] == [MANY[7]]
        assert list(namenode.open_files(f"{FOLDER}/many/1x")) == []
        assert list(namenode.open_files("/no/such/folder")) == []


def test_a_user_is_denied_the_listing_and_told_why(minicluster: Minicluster) -> None:
    with rpc(minicluster, "streamer") as namenode, pytest.raises(Denied, match="Superuser privilege is required"):
        next(namenode.open_files(FOLDER))


def test_an_ordinary_user_learns_each_files_holder_and_no_lease_notices(minicluster: Minicluster, hdfs: Hdfs) -> None:
    """The NameNode's own list, which only the superuser gets, has the same names before and after."""
    with rpc(minicluster) as superuser, rpc(minicluster, "streamer") as namenode:
        before = {file.path: file.holder for file in superuser.open_files(FOLDER)}
        asked = [*before, f"{FOLDER}/closed", f"{FOLDER}/missing", FOLDER]
        told = namenode.holders(asked)
        after = {file.path: file.holder for file in superuser.open_files(FOLDER)}
    assert dict(zip(asked, told, strict=True)) == before | dict.fromkeys(asked[-3:])
    assert before == after
    assert hdfs.read(f"{FOLDER}/closed") == "closed"


def test_names_of_every_kind_are_looked_at_as_they_are(minicluster: Minicluster) -> None:
    with rpc(minicluster, "streamer") as namenode:
        states = namenode.states(ODD)
        assert [state.path for state in states if isinstance(state, FileState)] == ODD
        assert namenode.closed(ODD) == [False] * len(ODD)


def test_an_open_file_is_reported_with_its_last_block(minicluster: Minicluster) -> None:
    with rpc(minicluster, "streamer") as namenode:
        (state,) = namenode.states(ODD[:1])
    assert isinstance(state, FileState)
    assert (state.is_open, state.owner, state.length, state.visible_length) == (True, getuser(), SIZE, None)
    assert not state.measured
    assert datetime.now(UTC) - state.modified < timedelta(minutes=10)
    assert state.block is not None
    assert (state.block.length, state.block.complete, state.block.hosts) == (SIZE, False, ("localhost",))
    assert datetime.now(UTC) - (state.block.newest_report or state.modified) < timedelta(seconds=30)


def test_each_file_has_its_own_answer(minicluster: Minicluster) -> None:
    """A file that is missing or may not be read does not affect the answers for the others."""
    with rpc(minicluster, "streamer") as namenode:
        paths = [MANY[0], f"{FOLDER}/closed", f"{FOLDER}/missing", FOLDER, f"{FOLDER}-beside/private", MANY[1]]
        empty, closed, missing, folder, private, other = namenode.states(paths)
        answers = namenode.closed([MANY[0], f"{FOLDER}/closed", f"{FOLDER}/missing"])
    assert isinstance(empty, FileState)
    assert isinstance(closed, FileState)
    assert isinstance(other, FileState)
    assert (empty.is_open, empty.block, empty.length) == (True, None, 0)
    assert (closed.is_open, closed.length, closed.block and closed.block.complete) == (False, 6, True)
    assert [type(answer) for answer in (missing, folder, private)] == [NotFound, NotFound, Denied]
    assert answers[:2] == [False, True]
    assert isinstance(answers[2], NotFound)


def test_a_thousand_states_come_in_order(minicluster: Minicluster) -> None:
    with rpc(minicluster, "streamer") as namenode:
        states = namenode.states(MANY)
    assert [state.path for state in states if isinstance(state, FileState)] == MANY


def test_threads_share_a_connection(minicluster: Minicluster) -> None:
    with rpc(minicluster, "streamer") as namenode, ThreadPoolExecutor(4) as pool:
        for states in pool.map(namenode.states, [MANY[start::4] for start in range(4)]):
            assert all(isinstance(state, FileState) for state in states)


def test_a_gateway_looks_as_the_user_whom_it_may_impersonate(minicluster: Minicluster) -> None:
    with rpc(minicluster, "gateway") as gateway, rpc(minicluster, "gateway", do_as=getuser()) as impersonating:
        assert isinstance(gateway.states(ODD[:1])[0], Denied)
        assert isinstance(impersonating.states(ODD[:1])[0], FileState)
    with (
        rpc(minicluster, "watcher", do_as=getuser()) as namenode,
        pytest.raises(Denied, match="not allowed to impersonate"),
    ):
        namenode.states(ODD[:1])


def test_a_failover_in_the_middle_of_a_listing_loses_and_repeats_nothing(minicluster: Minicluster) -> None:
    with rpc(minicluster) as namenode:
        listing = (file.path for file in namenode.open_files(FOLDER))
        begun = list(islice(listing, 10))
        minicluster.failover()
        assert sorted(begun + list(listing)) == sorted(MANY + ODD)
        assert namenode.closed(MANY[:3]) == [False] * 3


def test_a_frozen_standby_keeps_nobody_from_the_active_namenode(
    minicluster: Minicluster, standby_first: tuple[str, ...]
) -> None:
    standby = next(name for name in ("nn1", "nn2") if name != minicluster.active_namenode())
    with frozen(minicluster, standby), impatient(minicluster, *standby_first) as namenode:
        assert namenode.closed(MANY[:1]) == [False]


def test_a_frozen_active_namenode_is_given_up_in_time_and_both_are_named(
    minicluster: Minicluster, standby_first: tuple[str, ...]
) -> None:
    with impatient(minicluster) as namenode:
        namenode.closed(MANY[:1])
        with frozen(minicluster, minicluster.active_namenode()):
            started = time.monotonic()
            with pytest.raises(Unavailable) as caught:
                namenode.closed(MANY[:1])
            assert time.monotonic() - started < 60
        assert all(address in str(caught.value) for address in standby_first)
        await_that(lambda: _answered(namenode), "the NameNode answers again")


def _answered(namenode: NameNodeRpc) -> bool:
    try:
        return namenode.closed(MANY[:1]) == [False]
    except Unavailable:
        return False


def test_a_dead_active_namenode_is_left_as_soon_as_the_other_one_is_active(minicluster: Minicluster) -> None:
    dead = minicluster.active_namenode()
    with rpc(minicluster) as namenode, ThreadPoolExecutor(1) as pool:
        namenode.closed(MANY[:1])
        minicluster.kill(dead)
        failover = pool.submit(minicluster.failover)
        try:
            assert len(list(namenode.open_files(FOLDER))) == len(MANY + ODD)
        finally:
            failover.result()
            minicluster.start(dead)
        assert namenode.closed(MANY[:1]) == [False]


def test_a_cluster_without_any_namenode_is_unavailable_at_once(minicluster: Minicluster) -> None:
    with (
        impatient(minicluster, "localhost:1", "localhost:2") as namenode,
        pytest.raises(Unavailable, match="localhost:2"),
    ):
        namenode.closed(MANY[:1])


def test_without_a_hadoop_conf_folder_there_is_no_rpc(minicluster: Minicluster) -> None:
    with cluster(minicluster) as found, pytest.raises(InvalidInput, match="hadoop_conf_dir"):
        namenode_rpc(replace(found, hadoop_conf_dir=None), found.watcher)


# The walk by fsck.


def test_fsck_finds_what_the_listing_finds(minicluster: Minicluster) -> None:
    assert sorted(fsck(minicluster, FOLDER, "streamer")) == sorted(MANY + ODD)
    assert set(fsck(minicluster, "/")) >= {*MANY, *ODD}


@pytest.mark.parametrize("path", ODD)
def test_fsck_finds_a_file_by_its_odd_name(minicluster: Minicluster, path: str) -> None:
    assert fsck(minicluster, path, "streamer") == [path]


def test_fsck_finds_open_files_among_its_reports_of_others(minicluster: Minicluster, hdfs: Hdfs) -> None:
    """Its reports of files that lack replicas stand before, between and after the open ones."""
    folder = f"{FOLDER}-beside/reported"
    paths = [f"{folder}/{name}" for name in ("b", "d\n/d. 5 bytes, 1 block(s)", "f")]
    for name in "aceg":
        hdfs.write(f"{folder}/{name}", "closed")
    native_client(minicluster).set_replication(f"{folder}/a", 3)
    with native_writer(minicluster, paths, SIZE):
        for name in "ceg":
            native_client(minicluster).set_replication(f"{folder}/{name}", 3)
        said = minicluster.hdfs("fsck", folder, "-openforwrite").stdout
        assert said.count("Under replicated BP-") == 4
        assert sorted(fsck(minicluster, folder, "streamer")) == sorted(paths)


def test_an_erasure_coded_file_is_reported_as_such(minicluster: Minicluster, hdfs: Hdfs) -> None:
    folder, policy = f"{FOLDER}-beside/striped", "XOR-2-1-1024k"
    hdfs.make_folder(folder)
    for words in (("-enablePolicy",), ("-setPolicy", "-path", folder)):
        done = minicluster.hadoop_main("org.apache.hadoop.hdfs.tools.ECAdmin", *words, "-policy", policy)
        assert "policy" in done.stdout.lower(), done.stderr
    # The tests' writer has blocks smaller than a cell of the policy.
    with native_client(minicluster).create(f"{folder}/open"), rpc(minicluster, "streamer") as namenode:
        (striped,) = namenode.states([f"{folder}/open"])
        (plain,) = namenode.states(ODD[:1])
        assert fsck(minicluster, folder, "streamer") == [f"{folder}/open"]
    assert isinstance(striped, FileState)
    assert isinstance(plain, FileState)
    assert (striped.erasure_coded, plain.erasure_coded) == (True, False)


def test_fsck_finds_no_closed_file_and_misses_what_is_not_there(minicluster: Minicluster) -> None:
    assert fsck(minicluster, f"{FOLDER}/closed", "streamer") == []
    with pytest.raises(NotFound):
        fsck(minicluster, f"{FOLDER}/missing", "streamer")


def test_fsck_is_denied_by_a_folder_or_a_single_file_that_the_user_may_not_read(minicluster: Minicluster) -> None:
    with pytest.raises(Denied, match="Permission denied: user=watcher, access=READ_EXECUTE"):
        fsck(minicluster, "/user", "watcher")
    with pytest.raises(Denied, match=r"access=READ, .*-beside/private"):
        fsck(minicluster, f"{FOLDER}-beside", "streamer")


def test_fsck_walks_as_the_user_whom_the_gateway_may_impersonate(minicluster: Minicluster) -> None:
    assert sorted(fsck(minicluster, FOLDER, "gateway", do_as=getuser())) == sorted(MANY + ODD)
    with pytest.raises(Denied, match="not allowed to impersonate"):
        fsck(minicluster, FOLDER, "watcher", do_as=getuser())


def test_fsck_passes_the_standby_by_and_names_both_when_none_is_active(minicluster: Minicluster) -> None:
    active, superuser = minicluster.active_namenode(), identity(minicluster, "hdfs")
    standby_first = minicluster.namenodes if active == "nn2" else tuple(reversed(minicluster.namenodes))
    assert len(list(open_files_by_fsck(standby_first, superuser, Tls(), FOLDER))) == len(MANY + ODD)
    with pytest.raises(Unavailable, match="it is not the active one; http://localhost:1: "):
        list(open_files_by_fsck((standby_first[0], "http://localhost:1"), superuser, Tls(), FOLDER))


@contextmanager
def frozen(minicluster: Minicluster, daemon: str) -> Iterator[None]:
    minicluster.pause(daemon)
    try:
        yield
    finally:
        minicluster.resume(daemon)
