"""A listing of open files goes on when the NameNode that answered dies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from getpass import getuser

from airflow_kstream.minicluster import Minicluster
from tests.live.recovering import lease_session
from tests.live.writers import native_writer

FOLDER = f"/user/{getuser()}/open-files"
MANY = [f"{FOLDER}/{number}" for number in range(100)]


def test_a_dead_active_namenode_is_left_as_soon_as_the_other_one_is_active(minicluster: Minicluster) -> None:
    dead = minicluster.active_namenode()
    with (
        native_writer(minicluster, MANY, 0),
        lease_session(minicluster, "hdfs") as session,
        ThreadPoolExecutor(1) as pool,
    ):
        assert session.rpc
        assert session.rpc.closed(MANY[:1]) == [False]
        minicluster.kill(dead)
        failover = pool.submit(minicluster.failover)
        try:
            assert {file.path for file in session.rpc.open_files(FOLDER)} == set(MANY)
        finally:
            failover.result()
            minicluster.start(dead)
        assert session.rpc.closed(MANY[:1]) == [False]
        session.base.hdfs.delete(FOLDER, recursive=True)
