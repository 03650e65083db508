"""A NameNode that hears everything but one call: a proxy that withholds it, and so holds its caller at that moment."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# "hrpc", version, service class, authentication: what a Hadoop RPC connection begins with.
_PREAMBLE = 7
_LENGTH = struct.Struct(">i")


class HeldCall:
    """Requests go through but those that contain all of `marks`: they never arrive, nor what its connection sends next.

    Marks are parts of the request's protobuf: the method's name, or of a path. They are legible only where
    hadoop.rpc.protection is `authentication`.
    """

    def __init__(self, target: tuple[str, int], marks: tuple[bytes, ...]) -> None:
        self._target = target
        self._marks = marks
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._held = threading.Event()
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def wait(self, seconds: float) -> bool:
        """Return True if the call came within so many seconds; from then on its caller waits for an answer."""
        return self._held.wait(seconds)

    def close(self) -> None:
        """Cut every connection; the held call is lost."""
        _cut(self._listener)
        self._server.join()
        for end in self._connections:
            _cut(end)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connections.append(client)
                server = socket.create_connection(self._target)
                self._connections.append(server)
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=_copy, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client.makefile("rb") as requests:
            server.sendall(requests.read(_PREAMBLE))
            while True:
                size = requests.read(_LENGTH.size)
                if len(size) < _LENGTH.size:
                    server.shutdown(socket.SHUT_WR)
                    return
                request = requests.read(*_LENGTH.unpack(size))
                if all(mark in request for mark in self._marks):
                    self._held.set()
                    return
                server.sendall(size + request)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def _cut(end: socket.socket) -> None:
    # A thread that waits in accept or recv is woken by shutdown, not by close.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def held_call(target: tuple[str, int], *marks: bytes) -> Iterator[HeldCall]:
    call = HeldCall(target, marks)
    try:
        yield call
    finally:
        call.close()
