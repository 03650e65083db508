"""Calls to a NameNode through a wire on which an attacker listens and changes bytes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from getpass import getuser
from threading import Thread

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.open_file import FileState
from tests.live.realms import using
from tests.live.writers import native_writer

pytestmark = pytest.mark.clusters

Change = Callable[[bytes], bytes]
PATHS = [f"/user/{getuser()}/protected/{number}" for number in range(1100)]


@pytest.fixture(scope="module")
def protected(abroad: Minicluster) -> Iterator[Minicluster]:
    """The second cluster with a thousand open files."""
    with using(str(abroad.krb5_conf)), native_writer(abroad, PATHS, 0):
        yield abroad


class Wire:
    """A relay to the NameNode. `heard` is all that the NameNode sent to us; `change` alters it on the way."""

    def __init__(self, target: str, change: Change) -> None:
        self._target = target.rpartition(":")[0], int(target.rpartition(":")[2])
        self._change = change
        self._listening = socket.create_server(("localhost", 0))
        self.address = f"localhost:{self._listening.getsockname()[1]}"
        self.heard = bytearray()
        self._threads = [Thread(target=self._serve)]
        self._threads[0].start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            thread = Thread(target=self._relay, args=(near,))
            self._threads.append(thread)
            thread.start()

    def _relay(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._target) as far:
            upstream = Thread(target=_copy, args=(near, far, bytes))
            upstream.start()
            _copy(far, near, self._listen)
            upstream.join()

    def _listen(self, data: bytes) -> bytes:
        self.heard += data
        return self._change(data)


def _copy(source: socket.socket, target: socket.socket, change: Change) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(change(data))
    except OSError:
        pass
    finally:
        # Both directions end together: a client that leaves is not waited for.
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


@contextmanager
def namenode(minicluster: Minicluster, protection: str, change: Change = bytes) -> Iterator[tuple[NameNodeRpc, Wire]]:
    conf = HadoopConf(str(minicluster.conf_dir))
    superuser = Identity(minicluster.principal("hdfs"), keytab=str(minicluster.keytab("hdfs")))
    with (
        closing(Wire(conf.namenode_rpcs()[0], change)) as wire,
        closing(NameNodeRpc((wire.address,), conf.namenode_principal, superuser, protection)) as rpc,
    ):
        yield rpc, wire


@pytest.mark.parametrize("protection", ["integrity", "privacy", "authentication,privacy"])
def test_every_call_works_through_protected_messages(protected: Minicluster, protection: str) -> None:
    with namenode(protected, protection) as (rpc, _):
        assert sorted(file.path for file in rpc.open_files("/")) == sorted(PATHS)
        assert rpc.closed(PATHS) == [False] * len(PATHS)
        assert all(isinstance(state, FileState) for state in rpc.states(PATHS))


def test_an_eavesdropper_reads_the_paths_unless_they_are_private(protected: Minicluster) -> None:
    for protection, readable in (("integrity", True), ("privacy", False)):
        with namenode(protected, protection) as (rpc, wire):
            assert len(list(rpc.open_files("/"))) == len(PATHS)
        assert (PATHS[500].encode() in wire.heard) is readable


def test_what_was_changed_on_the_way_is_not_believed(protected: Minicluster) -> None:
    """Every path becomes another of the same length, so that only the seal can tell."""
    with (
        namenode(protected, "integrity", lambda data: data.replace(b"/protected/", b"/projected/")) as (rpc, _),
        pytest.raises(Unavailable, match="protected messages can't be trusted"),
    ):
        list(rpc.open_files("/"))


def test_protection_that_the_server_does_not_offer_is_not_silently_done_without(protected: Minicluster) -> None:
    with (
        namenode(protected, "authentication") as (rpc, _),
        pytest.raises(InvalidInput, match=r"\['integrity', 'privacy'\], ours is \['authentication'\]"),
    ):
        rpc.closed(["/"])
