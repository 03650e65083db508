"""The NameNode about itself: in safe mode or not, its clock, its name for us, and the lives of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.namenode import namenode_rpc
from airflow_kstream.clients.rpc.connection import RemoteError
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.formats.protobuf import encode
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.live.last_blocks import namenode_of
from tests.live.recovering import stuck
from tests.live.streams import await_that

# SafeModeActionProto
_LEAVE, _ENTER = 1, 2


@contextmanager
def safe_mode(minicluster: Minicluster) -> Iterator[None]:
    _turn(minicluster, _ENTER)
    try:
        yield
    finally:
        _turn(minicluster, _LEAVE)


def _turn(minicluster: Minicluster, action: int) -> None:
    # "Checked": a standby refuses it.
    with namenode_of(minicluster, "hdfs") as namenode:
        (answer,) = namenode.call("turn the safe mode", "setSafeMode", [encode({1: action, 2: 1})])
    assert not isinstance(answer, RemoteError), answer


def test_in_safe_mode_it_recovers_and_writes_nothing_and_tells_of_files(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    with safe_mode(minicluster), closing(namenode_rpc(owner.cluster, owner.identity)) as recoverer:
        await_that(lambda: owner.jmx.health().safe_mode, "it says so")
        (answer,) = recoverer.request_recovery([path])
        assert isinstance(answer, Unavailable)
        assert "SafeModeException" in answer.message
        with pytest.raises(Unavailable, match="SafeModeException"):
            owner.base.hdfs.write(f"{folder}/record", "")
        assert owner.states.closed([path]) == [False]
    await_that(lambda: not owner.jmx.health().safe_mode, "it is over")


def test_in_safe_mode_webhdfs_lists_folders_and_reads_no_file(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    """A read is redirected to a DataNode with a delegation token, which a NameNode in safe mode does not issue."""
    hdfs = owner.base.hdfs
    hdfs.write(f"{folder}/record", "words")
    with safe_mode(minicluster):
        await_that(lambda: owner.jmx.health().safe_mode, "it says so")
        assert "record" in {entry.name for entry in hdfs.list(folder)}
        with pytest.raises(Unavailable, match="SafeModeException: Cannot issue delegation token"):
            hdfs.read_part(f"{folder}/record", 0, 100)
    assert hdfs.read_part(f"{folder}/record", 0, 100) == b"words"


def test_it_counts_its_datanodes(owner: LeaseSession) -> None:
    health = owner.jmx.health()
    assert (health.live, health.dead) == (1, 0)


def test_it_tells_the_time_and_its_name_for_us(owner: LeaseSession) -> None:
    """hadoop.security.auth_to_local makes a principal's short name that of the user who runs the minicluster."""
    assert abs(owner.base.hdfs.now() - datetime.now(UTC)) < timedelta(seconds=30)
    assert owner.base.hdfs.user() == getuser()


def test_the_lifetimes_of_tokens_are_those_that_it_grants(minicluster: Minicluster, owner: LeaseSession) -> None:
    learned = learn_lifetimes(owner.base.hdfs, owner.identity)
    assert learned.max_lifetime == minicluster.plan.max_lifetime
    assert abs(learned.renew_interval - minicluster.plan.renew_interval) < timedelta(minutes=1)
