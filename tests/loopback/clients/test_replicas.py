"""What readers get of open files, where a DataNode's RPC server doesn't tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.leases import LeaseHdfsPool
from airflow_kstream.clients.hdfs.namenode import LastReplicas, NameNodeRpc, Replicas
from airflow_kstream.clients.hdfs.replicas import ReplicaLengths
from airflow_kstream.clients.rpc.connection import BrokenConnection, RpcConnection, Terms
from airflow_kstream.clients.rpc.sasl import LoginToken, NoProtection, Protection
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.formats.protobuf import delimited, encode
from tests.simulated.hadoop_rpc import server_that_says

TOKEN = LoginToken(b"identifier", b"password")


@dataclass
class Servers:
    """A NameNode that names these DataNodes, and WebHDFS, which knows a length for every file."""

    replicas: Sequence[LastReplicas | KstreamError | None]
    protections: tuple[Protection, ...] = (Protection.AUTHENTICATION,)
    by_web: list[str] = field(default_factory=list)

    def last_replicas(self, paths: Sequence[str]) -> Sequence[LastReplicas | KstreamError | None]:
        return self.replicas

    def visible_lengths(self, paths: Sequence[str]) -> list[int | KstreamError]:
        self.by_web += paths
        return [700] * len(paths)

    def lengths(self, paths: Sequence[str]) -> list[int | KstreamError]:
        return ReplicaLengths(cast(NameNodeRpc, self), cast(LeaseHdfsPool, self), (2.0, 2.0)).visible_lengths(paths)


def on(*addresses: str) -> LastReplicas:
    return LastReplicas(5, (Replicas(b"", addresses, TOKEN),))


def test_webhdfs_tells_what_no_datanode_tells_by_rpc() -> None:
    with server_that_says(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web, server_that_says(b"") as closing:
        servers = Servers([on(web), on(closing), on("127.0.0.1:1", web), None])
        assert servers.lengths(["/a", "/b", "/c", "/striped"]) == [700] * 4
    assert servers.by_web == ["/a", "/b", "/c", "/striped"]


def test_a_file_that_can_not_be_read_has_its_error() -> None:
    gone = NotFound("it does not exist")
    servers = Servers([gone])
    assert servers.lengths(["/gone"]) == [gone]
    assert servers.by_web == []


def frame_that_offers_a_login_by_token() -> bytes:
    """Return a server's answer to a client that asks how it may log in (SaslRpcServer, RpcHeader.proto)."""
    header = delimited(encode({1: -33 % (1 << 32), 2: 0}))
    challenge = 'realm="default",nonce="n",qop="auth",charset=utf-8,algorithm=md5-sess'
    offer = encode({1: "TOKEN", 2: "DIGEST-MD5", 3: "", 4: "default", 5: challenge})
    content = header + delimited(encode({2: 1, 4: offer}))
    return len(content).to_bytes(4) + content


@pytest.mark.parametrize(
    ("wanted", "error"), [(Protection.PRIVACY, NoProtection), (Protection.AUTHENTICATION, BrokenConnection)]
)
def test_nobody_logs_in_by_token_where_messages_must_be_protected(wanted: Protection, error: type[Exception]) -> None:
    """The server ends the connection after its offer, so the login that begins breaks."""
    with server_that_says(frame_that_offers_a_login_by_token()) as address, pytest.raises(error):
        RpcConnection(address, TOKEN, Terms("protocol", "", (wanted,), 2.0, 2.0))
