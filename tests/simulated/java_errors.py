"""Errors of the JVM as Py4J raises them in a driver's Python."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any


class JavaError(Exception):
    """A Java exception with its causes: each a class and its words, or RemoteException, the server's class and its
    words."""

    def __init__(self, *told: str, causes: Sequence[tuple[str, ...]] = ()) -> None:
        self.java_exception = _throwable([told, *causes])
        call = "An error occurred while calling o185.getFileStatus."
        stack = "\tat org.apache.hadoop.hdfs.DFSClient.x(DFSClient.java:1)"
        super().__init__(f"{call}\n: {told[0]}: {told[-1]}\n{stack}")


def _throwable(chain: Sequence[tuple[str, ...]]) -> Any:
    if not chain:
        return None
    name, *server, words = chain[0]
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: name),
        getClassName=lambda: server[0],
        getMessage=lambda: words,
        getCause=lambda: _throwable(chain[1:]),
    )
