"""Answers of the NameNode and the DataNodes about open files over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.jmx import NameNodeJmx
from airflow_kstream.clients.hdfs.leases import LeaseHdfs, LeaseHdfsPool
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.lease import HolderLiveness
from airflow_kstream.model.open_file import FileState
from tests.live.streams import await_that, cluster
from tests.live.writers import Writer, writer

FOLDER = f"/user/{getuser()}/questions"


@pytest.fixture(scope="module")
def living(minicluster: Minicluster) -> Iterator[Writer]:
    with writer(minicluster) as client:
        yield client


@pytest.fixture
def hdfs(minicluster: Minicluster) -> Iterator[LeaseHdfs]:
    with cluster(minicluster) as found, closing(LeaseHdfs(found.namenodes, found.watcher, found.tls)) as client:
        yield client


def test_an_open_file_has_a_state_and_a_length_that_readers_see(hdfs: LeaseHdfs, living: Writer) -> None:
    """The NameNode learns of a block's first flush and of no later one; a reader gets them all."""
    path = f"{FOLDER}/flushed"
    living.leave(path, 5000)
    living.write(path, 70_000)
    living.hflush(path)
    state = hdfs.state(path)
    assert (state.is_open, state.length, state.measured) == (True, 5000, False)
    assert state.owner == getuser()
    assert state.block is not None
    assert state.block.hosts == ("localhost",)
    assert hdfs.now() - (state.block.newest_report or datetime.min.replace(tzinfo=UTC)) < timedelta(seconds=30)
    with hdfs.token() as token:
        assert hdfs.visible_length(path, token) == 75_000


def test_an_empty_open_file_has_no_block_and_hides_nothing(hdfs: LeaseHdfs, living: Writer) -> None:
    path = f"{FOLDER}/empty"
    living.open(path)
    state = hdfs.state(path)
    assert (state.is_open, state.block, state.measured) == (True, None, True)


def test_a_closed_file_is_distinguished_from_an_open_one_of_the_same_length(hdfs: LeaseHdfs, living: Writer) -> None:
    path = f"{FOLDER}/closed"
    living.open(path)
    living.write(path, 700)
    living.close(path)
    state = hdfs.state(path)
    assert (state.is_open, state.length, state.measured) == (False, 700, True)


def test_a_probe_of_a_living_holders_file_names_the_holder_and_harms_nothing(hdfs: LeaseHdfs, living: Writer) -> None:
    path = f"{FOLDER}/held"
    living.leave(path, 100)
    answer = hdfs.ask_holder(path)
    assert (answer.liveness, answer.holder) == (HolderLiveness.RENEWING, living.holder)
    living.write(path, 50)
    living.close(path)
    assert hdfs.state(path).length == 150


def test_a_probe_of_a_closed_file_says_so_and_leaves_its_length(hdfs: LeaseHdfs, living: Writer) -> None:
    path = f"{FOLDER}/shut"
    living.open(path)
    living.write(path, 10)
    living.close(path)
    assert hdfs.ask_holder(path).closed
    assert hdfs.state(path).length == 10


def test_an_impossible_request_is_refused_with_an_error_of_ours(
    minicluster: Minicluster, hdfs: LeaseHdfs, living: Writer
) -> None:
    living.leave(f"{FOLDER}/private", 10)
    with pytest.raises(NotFound, match=r"probe the holder of .*/vanished"):
        hdfs.ask_holder(f"{FOLDER}/vanished")
    with pytest.raises(InvalidInput, match="is a directory, not a file"):
        hdfs.state(FOLDER)
    with (
        cluster(minicluster, "watcher") as found,
        closing(LeaseHdfs(found.namenodes, found.watcher, found.tls)) as other,
        pytest.raises(Denied, match=r"watcher@.*Permission denied"),
    ):
        other.ask_holder(f"{FOLDER}/private")


@pytest.mark.parametrize(
    "name",
    [
        "two words",
        "a\ttab",
        "two\nlines",
        "ü 流",
        "not composed e\u0301",
        "[a-z]*{x,y}?",
        "50%25",
        "a;b&c=#d+e",
        "currently owned by X on Y",
    ],
)
def test_a_name_may_hold_anything(hdfs: LeaseHdfs, living: Writer, name: str) -> None:
    path = f"{FOLDER}/{name}"
    living.leave(path, 321)
    assert hdfs.state(path).is_open
    with hdfs.token() as token:
        assert hdfs.visible_length(path, token) == 321
    assert hdfs.ask_holder(path).holder == living.holder


def test_many_files_are_looked_up_at_once_and_answered_in_order(
    minicluster: Minicluster, hdfs: LeaseHdfs, living: Writer
) -> None:
    names = [f"{FOLDER}/many-{number}" for number in range(20)]
    for number, path in enumerate(names):
        living.leave(path, 100 + number)
    asked = [*names[:10], f"{FOLDER}/none", *names[10:]]
    with cluster(minicluster) as found, closing(LeaseHdfsPool(found.namenodes, found.watcher, found.tls)) as pool:
        states, lengths = pool.states(asked), pool.visible_lengths(asked)
    assert isinstance(states[10], NotFound)
    assert isinstance(lengths[10], NotFound)
    assert [state.path for state in states if isinstance(state, FileState)] == names
    assert [length for length in lengths if isinstance(length, int)] == list(range(100, 120))


def test_measuring_many_files_makes_the_namenode_one_token_and_not_one_for_each(
    minicluster: Minicluster, living: Writer
) -> None:
    names = [f"{FOLDER}/one-token-{number}" for number in range(10)]
    for path in names:
        living.leave(path, 100)
    before = _audited(minicluster, "getDelegationToken")
    with cluster(minicluster) as found, closing(LeaseHdfsPool(found.namenodes, found.watcher, found.tls)) as pool:
        assert pool.visible_lengths(names) == [100] * len(names)
    # Other tests use this cluster, too, but none so much at this moment.
    assert 1 <= _audited(minicluster, "getDelegationToken") - before < len(names)


def _audited(minicluster: Minicluster, command: str) -> int:
    logs = minicluster.event_logs()
    return sum(logs[f"{name}-audit"].read_text().count(f"cmd={command}\t") for name in ("nn1", "nn2"))


def test_a_paused_datanode_leaves_the_length_unknown_and_not_zero(
    minicluster: Minicluster, living: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It never answers: the length of the wait doesn't matter here.
    monkeypatch.setattr("airflow_kstream.clients.hdfs.webhdfs.CONNECT_AND_READ_SECONDS", (5, 8))
    path = f"{FOLDER}/behind-a-paused-datanode"
    living.leave(path, 100)
    minicluster.pause("datanode")
    try:
        with (
            cluster(minicluster) as found,
            closing(LeaseHdfsPool(found.namenodes, found.watcher, found.tls, 1)) as pool,
        ):
            (length,) = pool.visible_lengths([path])
    finally:
        minicluster.resume("datanode")
    assert not isinstance(length, int)
    assert length.retryable


def test_the_gate_follows_the_active_namenode_and_knows_safe_mode(minicluster: Minicluster) -> None:
    with (
        cluster(minicluster, "watcher") as found,
        closing(NameNodeJmx(found.namenodes, found.watcher, found.tls)) as jmx,
    ):
        before = jmx.health()
        assert (before.safe_mode, before.dead, before.version) == (False, 0, "3.4.3")
        minicluster.failover()
        after = jmx.health()
        assert after.active != before.active
        assert after.active_since is not None
        assert before.active_since is not None
        assert after.active_since > before.active_since
        minicluster.hdfs("dfsadmin", "-safemode", "enter")
        try:
            await_that(lambda: jmx.health().safe_mode, "the gate tells of safe mode")
        finally:
            minicluster.hdfs("dfsadmin", "-safemode", "leave")
        await_that(lambda: not jmx.health().safe_mode, "it is over")
