"""Which requests a NameNode may get twice. A connection is simulated: a real one begins with a Kerberos login."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from airflow_kstream.clients.rpc.connection import Answer, BrokenConnection, RemoteError, RpcConnection, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity

FIRST, SECOND = "nn1:8020", "nn2:8020"
STANDBY = RemoteError("StandbyException", "Operation category WRITE is not supported in state standby")


class Connection:
    """One that gives these answers, or breaks once it has sent the requests."""

    latency = 0.0

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers
        self.sent: list[Sequence[bytes]] = []

    def call(self, method: str, requests: Sequence[bytes]) -> list[Answer]:
        self.sent.append(requests)
        if not self.answers:
            raise BrokenConnection("the server closed the connection")
        return list(self.answers)

    def close(self) -> None:
        pass


def pair(first: Connection, second: Connection) -> ActiveServer:
    namenodes = ActiveServer((FIRST, SECOND), Identity("etl@R"), Terms("protocol", "nn/_HOST@R", ()))
    namenodes._connections |= {FIRST: cast(RpcConnection, first), SECOND: cast(RpcConnection, second)}
    return namenodes


def test_what_may_have_arrived_is_not_sent_again_where_once_is_meant() -> None:
    broken, other = Connection(), Connection(RemoteError("FileNotFoundException", "/a"))
    with pytest.raises(Unavailable, match=r"recover leases on nn1:8020, nn2:8020 .*the requests may have arrived"):
        pair(broken, other).call_once("recover leases", "recoverLease", [b"a", b"b"])
    assert (broken.sent, other.sent) == ([[b"a", b"b"]], [])


def test_a_standby_that_refuses_all_makes_way_for_the_other() -> None:
    answer = RemoteError("FileNotFoundException", "/a")
    standby, active = Connection(STANDBY, STANDBY), Connection(answer, answer)
    assert pair(standby, active).call_once("recover leases", "recoverLease", [b"a", b"b"]) == [answer, answer]


def test_a_namenode_that_became_the_standby_halfway_keeps_its_answers() -> None:
    answer = RemoteError("FileNotFoundException", "/a")
    halfway, other = Connection(answer, STANDBY), Connection(answer, answer)
    assert pair(halfway, other).call_once("recover leases", "recoverLease", [b"a", b"b"]) == [answer, STANDBY]
    assert other.sent == []
