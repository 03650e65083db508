"""Parts of files on HDFS, read from the DataNodes themselves by hdfs-native."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from airflow_kstream.clients.hdfs.native import native_client, native_error, require_native
from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.identity import Identity


class NativeReads:
    """One file, which any number of threads may read.

    A DataNode hands the bytes over by its own protocol, for a third of the CPU that WebHDFS costs it; hdfs-native
    decrypts them in an encryption zone. `seconds` is the longest wait for one answer, because hdfs-native waits for a
    paused server for ever.

    Raises InvalidInput: when hdfs-native can't assume the identity.
    """

    def __init__(self, cluster: Cluster, identity: Identity, path: str, seconds: float = 60.0) -> None:
        require_native(cluster, identity)
        self._cluster, self._identity = cluster, identity
        self._path, self._seconds = path, seconds
        self._file: hdfs_native.FileReader | None = None

    def read_at(self, at: int, size: int) -> bytes:
        """Return at most `size` bytes; fewer at the end of the file.

        Raises NotFound, Denied, CredentialError: as the servers say. Raises Unavailable: when there is no answer.
        """
        tried = f"read {size} bytes of {self._path}"
        answer: Future[bytes] = Future()
        # A daemon: it may wait for ever, but the process must not wait for it.
        Thread(target=_answer, args=(answer, lambda: self._read(at, size)), daemon=True).start()
        try:
            error = answer.exception(self._seconds)
        except TimeoutError:
            words = f"no answer within {self._seconds:.0f} s: is a server paused, or cut off?"
            server, principal = self._cluster.default_fs, str(self._identity)
            raise Unavailable(words, tried=tried, server=server, principal=principal) from None
        if error:
            raise native_error(error, tried, self._cluster, self._identity) from error
        return answer.result()

    def _read(self, at: int, size: int) -> bytes:
        file = self._file or native_client(self._cluster, self._identity).read(self._path)
        self._file = file
        return file.read_range(at, max(min(size, len(file) - at), 0))


def _answer(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # the library's panics are no Exceptions, and an answer is owed
        future.set_exception(error)
