"""Pauses of a process whose threads serve on."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from airflow_kstream.minicluster.processes import Identity

ECHO = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)

def serve():
    connection, _ = server.accept()
    while asked := connection.recv(1):
        connection.sendall(asked)

threading.Thread(target=serve, daemon=True).start()
threading.Event().wait()
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True) as server:
        yield server
        server.kill()


def test_a_paused_process_answers_no_request_until_it_is_resumed(server: subprocess.Popen[str]) -> None:
    """A SIGSTOP alone leaves its second thread the time to answer: two in three did."""
    assert server.stdout is not None
    identity, address = Identity.of(server.pid), ("127.0.0.1", int(server.stdout.readline()))
    with closing(socket.create_connection(address)) as connection:
        for _ in range(10):
            identity.pause()
            connection.sendall(b"?")
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            assert identity.state() == "paused"
            identity.resume()
            connection.settimeout(60)
            assert connection.recv(1) == b"?"


def test_a_dead_process_stands_still(server: subprocess.Popen[str]) -> None:
    identity = Identity.of(server.pid)
    server.send_signal(signal.SIGKILL)
    server.wait()
    identity.pause()
    assert identity.state() == "dead"
