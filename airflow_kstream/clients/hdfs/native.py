"""Parts of files on HDFS, read from the DataNodes themselves by hdfs-native, where it is installed (extra `triage`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

# Few attempts, because there is another way. In random order, so that a client made after a silence has a chance to
# begin with the other NameNode.
_SETTINGS = {"dfs.client.failover.max.attempts": "3", "dfs.client.failover.random.order": "true"}


class NativeReads:
    """The files of one cluster as one identity, for any number of threads: one login for all of them.

    A DataNode hands the bytes over by its own protocol, for a third of the CPU that WebHDFS costs it; hdfs-native
    decrypts them in an encryption zone. `seconds` is the longest wait for one answer, because hdfs-native waits for a
    paused server for ever.

    Raises InvalidInput: when hdfs-native can't assume the identity.
    """

    def __init__(self, cluster: Cluster, identity: Identity, seconds: float = 60.0) -> None:
        _require_native(cluster, identity)
        self._cluster, self._identity, self._seconds = cluster, identity, seconds
        self._client: hdfs_native.Client | None = None
        self._files: dict[str, hdfs_native.FileReader] = {}

    def read_part(self, path: str, at: int, size: int) -> bytes:
        """Return at most `size` bytes; fewer at the end of the file.

        Raises Unavailable: when they can't be read this way, for whatever reason. WebHDFS tells the reason better.
        """
        answer: Future[bytes] = Future()
        # A daemon: it may wait for ever, but the process must not wait for it.
        Thread(target=_answer, args=(answer, lambda: self._read(path, at, size)), daemon=True).start()
        try:
            error = answer.exception(self._seconds)
            words = f"hdfs-native failed: {str(error).partition(chr(10))[0] or type(error).__name__}"
        except TimeoutError:
            error, words = None, f"no answer within {self._seconds:.0f} s: is a server paused, or cut off?"
        else:
            if error is None:
                return answer.result()
        server, principal = self._cluster.default_fs, str(self._identity)
        raise Unavailable(words, tried=f"read {size} bytes of {path}", server=server, principal=principal) from error

    def _read(self, path: str, at: int, size: int) -> bytes:
        # Two threads may make one of them twice, which costs a request and nothing else.
        client = self._client = self._client or native_client(self._cluster, self._identity)
        file = self._files[path] = self._files.get(path) or client.read(path)
        return file.read_range(at, max(min(size, len(file) - at), 0))


def native_client(cluster: Cluster, identity: Identity) -> hdfs_native.Client:
    """Make a client; its realm is that of the process (KRB5_CONFIG). Raises the library's own errors."""
    return hdfs_native.Client(
        cluster.default_fs,
        _SETTINGS,
        cluster.hadoop_conf_dir,
        kerberos_principal=identity.principal,
        kerberos_keytab=identity.keytab,
        kerberos_cache=None if identity.keytab else identity.ticket_cache,
    )


def _require_native(cluster: Cluster, identity: Identity) -> None:
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} has no hadoop_conf_dir, which hdfs-native needs")
    if not (identity.keytab or identity.ticket_cache):
        raise InvalidInput(f"{identity.principal} has neither a keytab nor a ticket cache")
    # hdfs-native takes the impersonated user only from there, for the whole process.
    ambient = os.environ.get("HADOOP_PROXY_USER") or None
    if ambient != identity.do_as:
        raise InvalidInput(
            f"hdfs-native impersonates HADOOP_PROXY_USER, which is {ambient or 'not set'}, "
            f"but this connection impersonates {identity.do_as or 'nobody'}"
        )


def _answer(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # the library's panics are no Exceptions, and an answer is owed
        future.set_exception(error)
