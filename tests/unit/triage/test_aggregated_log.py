"""Bytes of a log on HDFS: read ahead within bounds, and over WebHDFS once hdfs-native has failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied, InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.triage.look import NativeFirst, ReadAhead

CONTENT = bytes(range(256)) * 4
NOBODY = Identity("nobody@NOWHERE.TEST", keytab="/nonexistent")


class Server:
    """A file whose requests are noted."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests: list[tuple[int, int]] = []
        self.error = error

    def read_at(self, at: int, size: int) -> bytes:
        self.requests.append((at, size))
        if self.error:
            raise self.error
        return CONTENT[at : at + size]

    def read_part(self, path: str, at: int, size: int) -> bytes:
        return self.read_at(at, size)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


def test_a_reader_that_goes_forward_asks_for_each_block_once(threads: ThreadPoolExecutor) -> None:
    server = Server()
    ahead = ReadAhead(server.read_at, len(CONTENT), threads, block=100, blocks=3)
    assert b"".join(ahead.read_at(at, 30) for at in range(0, len(CONTENT), 30)) == CONTENT
    assert sorted(server.requests) == [(at, min(100, len(CONTENT) - at)) for at in range(0, len(CONTENT), 100)]


def test_blocks_are_in_flight_before_they_are_needed_and_no_more_than_allowed() -> None:
    let_go = threading.Event()
    server = Server()

    def read_at(at: int, size: int) -> bytes:
        let_go.wait()
        return server.read_at(at, size)

    with ThreadPoolExecutor(20) as threads:
        ahead = ReadAhead(read_at, len(CONTENT), threads, block=100, blocks=3)
        first = threads.submit(ahead.read_at, 0, 10)
        let_go.set()
        assert first.result() == CONTENT[:10]
        assert ahead.read_at(100, 10) == CONTENT[100:110]
    assert sorted(server.requests) == [(0, 100), (100, 100), (200, 100), (300, 100)]


def test_blocks_that_were_used_are_not_kept(threads: ThreadPoolExecutor) -> None:
    server = Server()
    ahead = ReadAhead(server.read_at, len(CONTENT), threads, block=100, blocks=1)
    for at in (0, 100, 0):
        ahead.read_at(at, 10)
    assert server.requests == [(0, 100), (100, 100), (0, 100)]


def test_the_end_of_a_file_costs_one_request(threads: ThreadPoolExecutor) -> None:
    server = Server()
    ahead = ReadAhead(server.read_at, len(CONTENT), threads, block=100, blocks=3)
    assert ahead.read_at(len(CONTENT) - 20, 40) == CONTENT[-20:]
    assert len(server.requests) == 1


def test_a_file_that_lost_its_end_is_short_and_no_reader_waits_for_it(threads: ThreadPoolExecutor) -> None:
    ahead = ReadAhead(Server().read_at, len(CONTENT) + 500, threads, block=100, blocks=3)
    assert ahead.read_at(len(CONTENT) - 5, 400) == CONTENT[-5:]


def test_what_hdfs_native_cannot_read_is_read_over_webhdfs_from_then_on() -> None:
    native, web = Server(Unavailable("the port is closed")), Server()
    reads = NativeFirst(native.read_part, web.read_part)
    assert reads.read_part("/a", 10, 5) + reads.read_part("/b", 15, 5) == CONTENT[10:20]
    assert (native.requests, web.requests) == ([(10, 5)], [(10, 5), (15, 5)])


def test_an_error_of_both_ways_is_that_of_webhdfs() -> None:
    reads = NativeFirst(Server(Unavailable("the port is closed")).read_part, Server(Denied("no")).read_part)
    with pytest.raises(Denied, match="no"):
        reads.read_part("/a", 0, 1)


def test_without_a_conf_folder_hdfs_native_is_no_way() -> None:
    cluster = Cluster("c", (), (), "hdfs://c", NOBODY, state_dir="/s")
    with pytest.raises(InvalidInput, match="no hadoop_conf_dir"):
        NativeReads(cluster, NOBODY)
