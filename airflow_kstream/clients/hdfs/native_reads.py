"""Parts of files on HDFS, read from the DataNodes themselves by hdfs-native."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from airflow_kstream.clients.hdfs.native import native_client, native_error, require_native
from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity


class NativeReads:
    """The files of one cluster as one identity, for any number of threads: one login for all of them.

    A DataNode hands the bytes over by its own protocol, for a third of the CPU that WebHDFS costs it; hdfs-native
    decrypts them in an encryption zone. `seconds` is the longest wait for one answer, because hdfs-native waits for a
    paused server for ever.

    Raises InvalidInput: when hdfs-native can't assume the identity.
    """

    def __init__(self, cluster: Cluster, identity: Identity, seconds: float = 60.0) -> None:
        require_native(cluster, identity)
        self._cluster, self._identity, self._seconds = cluster, identity, seconds
        self._client: hdfs_native.Client | None = None
        self._files: dict[str, hdfs_native.FileReader] = {}

    def read_part(self, path: str, at: int, size: int) -> bytes:
        """Return at most `size` bytes; fewer at the end of the file.

        Raises NotFound, Denied, CredentialError: as the servers say. Raises Unavailable: when there is no answer.
        """
        tried = f"read {size} bytes of {path}"
        answer: Future[bytes] = Future()
        # A daemon: it may wait for ever, but the process must not wait for it.
        Thread(target=_answer, args=(answer, lambda: self._read(path, at, size)), daemon=True).start()
        try:
            error = answer.exception(self._seconds)
        except TimeoutError:
            words = f"no answer within {self._seconds:.0f} s: is a server paused, or cut off?"
            server, principal = self._cluster.default_fs, str(self._identity)
            raise Unavailable(words, tried=tried, server=server, principal=principal) from None
        if error:
            raise native_error(error, tried, self._cluster, self._identity) from error
        return answer.result()

    def _read(self, path: str, at: int, size: int) -> bytes:
        # Two threads may make one of them twice, which costs a request and nothing else.
        client = self._client = self._client or native_client(self._cluster, self._identity)
        file = self._files[path] = self._files.get(path) or client.read(path)
        return file.read_range(at, max(min(size, len(file) - at), 0))


def _answer(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # the library's panics are no Exceptions, and an answer is owed
        future.set_exception(error)
