"""A login that fails leaves no connection open: a supervisor that runs for months would run out of files."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

import pytest

from airflow_kstream.clients.http import http_errors, kerberos_session
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.keytabs import Key, keytab_bytes
from tests.simulated.strange_servers import HTML, Answer, serving

ASKS_FOR_A_LOGIN = Answer(401, HTML, "text/html", {"WWW-Authenticate": "Negotiate"})


def connections_to(address: str) -> list[socket.socket]:
    port = int(address.rpartition(":")[2])
    # By its type alone: isinstance would load what lazy proxies stand for.
    sockets = [each for each in gc.get_objects() if issubclass(type(each), socket.socket)]
    return [each for each in sockets if _peer(each) == port]


def _peer(opened: socket.socket) -> int | None:
    """Return the port at its other end; None if it has none, as one that is closed, listens, or is a file."""
    try:
        return int(opened.getpeername()[1])
    except (OSError, IndexError, ValueError):
        return None


def test_a_keytab_of_another_principal_leaves_no_connection_open(tmp_path: Path) -> None:
    keytab = tmp_path / "s.keytab"
    keytab.write_bytes(keytab_bytes(Key(1)))
    watcher = Identity("watcher@KSTREAM.TEST", keytab=str(keytab))
    with serving({"": ASKS_FOR_A_LOGIN}) as server:
        with (
            pytest.raises(CredentialError) as refused,
            http_errors("ask", server.address, watcher),
            kerberos_session(watcher, Tls()) as session,
        ):
            session.get(server.address, timeout=5)
        assert connections_to(server.address) == [], refused.value
