"""The length of open files for readers, as their DataNodes' RPC servers tell it: no redirect, no HTTP, no JVM's client.

WebHDFS tells it, too, but makes the DataNode open each file as a client of its own: ten times the work, and its
redirect names another file if a name is not in Unicode's form NFC (NamenodeWebHdfsMethods.redirectURI).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.namenode import LastReplicas, NameNodeRpc, Replicas
from airflow_kstream.clients.rpc.connection import RemoteError, RpcConnection, Terms
from airflow_kstream.clients.rpc.sasl import LoginToken, NoProtection
from airflow_kstream.clients.waiting import USUAL
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.formats.protobuf import Malformed, encode

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.leases import LeaseHdfsPool


_PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"
# Less than usual, because WebHDFS may tell a length, too.
_DATANODE_SECONDS = (USUAL.connect, 20.0)
_WIDTH = 8
# All DataNodes know nothing of a block whose pipeline is just being made: nothing was flushed to it (DFSInputStream).
_NO_REPLICA = "ReplicaNotFoundException"

Length = int | KstreamError


class ReplicaLengths:
    """The lengths of many files, `_WIDTH` at a time; results in order, a file's error among them.

    Files are asked of WebHDFS if RPC doesn't do: those of DataNodes whose RPC server can't be reached or wants
    protection or a login that we can't give. Such a server is tried once in the life of this object.

    The length of an erasure-coded file is that of all its data on the DataNodes that answer, including a last stripe
    that is not whole: it grows with every packet of its writer, while readers and a recovery stop at the last whole
    stripe (BlockRecoveryWorker.getSafeLength). WebHDFS tells only how long the first of a stripe's blocks is
    (DFSInputStream.readBlockLength asks for no other), and stands still while the others grow.
    """

    def __init__(
        self, namenode: NameNodeRpc, web: LeaseHdfsPool, seconds: tuple[float, float] = _DATANODE_SECONDS
    ) -> None:
        self._namenode = namenode
        self._web = web
        self._terms = Terms(_PROTOCOL, "", namenode.protections, *seconds)
        self._closed: set[str] = set()

    def visible_lengths(self, paths: Sequence[str]) -> list[Length]:
        """Measure the lengths. Raises Unavailable: when no NameNode is active."""
        with ThreadPoolExecutor(_WIDTH) as threads:
            told = list(threads.map(self._told, self._namenode.last_replicas(paths)))
        rest = [path for path, length in zip(paths, told, strict=True) if length is None]
        by_web = dict(zip(rest, self._web.visible_lengths(rest), strict=True))
        return [by_web[path] if length is None else length for path, length in zip(paths, told, strict=True)]

    def _told(self, replicas: LastReplicas | KstreamError | None) -> Length | None:
        """Return the length that the DataNodes tell, or None if WebHDFS has to tell it."""
        if not isinstance(replicas, LastReplicas):
            return replicas
        lengths = [self._length(part) for part in replicas.parts]
        told = [length for length in lengths if isinstance(length, int)]
        return replicas.before + sum(told) if told else lengths[0]

    def _length(self, replicas: Replicas) -> Length | None:
        """Return the length that the first DataNode tells, or None if none of them can be asked."""
        silent, waiting, without = None, 0, 0
        for address in (address for address in replicas.addresses if address not in self._closed):
            try:
                length = self._asked(address, replicas)
                if length >= 0:
                    return length
                # -1: it was started again, and nobody reads or writes the replica until it is recovered
                # (ReplicaWaitingToBeRecovered).
                waiting += 1
            except TimeoutError:
                silent = Unavailable("it does not answer in time", tried="ask for a block's length", server=address)
            except RemoteError as error:
                without += error.java_class == _NO_REPLICA
            except _Unreachable:
                self._closed.add(address)
        if not replicas.addresses or waiting + without < len(replicas.addresses):
            return silent
        return replicas.known_length if waiting else 0

    def _asked(self, address: str, replicas: Replicas) -> int:
        # A login for each block: its token is the proof that the NameNode lets us read it.
        with closing(self._connected(address, replicas.token)) as connection:
            try:
                (answer,) = connection.call("getReplicaVisibleLength", [encode({1: replicas.block})])
            except (ConnectionError, Malformed) as error:
                raise _Unreachable from error
        if isinstance(answer, RemoteError):
            raise answer
        return answer.signed(1)

    def _connected(self, address: str, token: LoginToken) -> RpcConnection:
        try:
            return RpcConnection(address, token, self._terms)
        except (OSError, Malformed, NoProtection) as error:
            raise _Unreachable from error


class _Unreachable(Exception):
    """The lack of an RPC server that lets us in."""
