"""Two NameNodes: one becomes active in the other's place, or is frozen.

A failover renews every lease, so the test that waits for the soft limit of leases comes long after these.
"""

from __future__ import annotations

import time
from itertools import islice

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import FOLDER, MANY, ODD, impatient
from tests.live.recovering import paused
from tests.live.streams import await_that

pytestmark = pytest.mark.usefixtures("opened")


def test_the_active_namenode_tells_since_when_it_is_active(minicluster: Minicluster, owner: LeaseSession) -> None:
    """WebHDFS goes on there, too."""
    owner.base.hdfs.write(f"{FOLDER}/before", "", overwrite=True)
    before = owner.jmx.health()
    assert (before.safe_mode, before.dead, before.version) == (False, 0, "3.4.3")
    minicluster.failover()
    after = owner.jmx.health()
    assert after.active != before.active
    assert after.active_since is not None
    assert before.active_since is not None
    assert after.active_since > before.active_since
    owner.base.hdfs.write(f"{FOLDER}/after", "", overwrite=True)
    assert {"before", "after"} <= owner.base.hdfs.names(FOLDER)


def test_a_failover_in_the_middle_of_a_listing_loses_and_repeats_nothing(
    minicluster: Minicluster, everything: NameNodeRpc
) -> None:
    listing = (file.path for file in everything.open_files(FOLDER))
    begun = list(islice(listing, 10))
    minicluster.failover()
    assert sorted(begun + list(listing)) == sorted(MANY + ODD)
    assert everything.closed(MANY[:3]) == [False] * 3


def test_a_frozen_standby_keeps_nobody_from_the_active_namenode(minicluster: Minicluster, owner: LeaseSession) -> None:
    standby = {"nn1": "nn2", "nn2": "nn1"}[minicluster.active_namenode()]
    with impatient(minicluster, owner) as namenode, paused(minicluster, standby):
        assert namenode.closed(MANY[:1]) == [False]


def test_a_frozen_active_namenode_is_given_up_in_time_and_both_are_named(
    minicluster: Minicluster, owner: LeaseSession
) -> None:
    """As soon as it is no longer frozen it answers again."""
    with impatient(minicluster, owner) as namenode:
        namenode.closed(MANY[:1])
        with paused(minicluster, minicluster.active_namenode()):
            started = time.monotonic()
            with pytest.raises(Unavailable) as caught:
                namenode.closed(MANY[:1])
            assert time.monotonic() - started < 60
        addresses = HadoopConf(str(minicluster.conf_dir)).namenode_rpcs()
        assert all(address in str(caught.value) for address in addresses)
        await_that(lambda: _answered(namenode), "the NameNode answers again")


def _answered(namenode: NameNodeRpc) -> bool:
    try:
        return namenode.closed(MANY[:1]) == [False]
    except Unavailable:
        return False
