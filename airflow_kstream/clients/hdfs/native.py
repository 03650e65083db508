"""hdfs-native: how its client is made, and which of our errors its errors are.

Parts of files on HDFS, read from the DataNodes themselves by hdfs-native.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.clients.rpc.java_exceptions import error_of, simple_name
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Conflict, CredentialError, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

# What making a client raises, and most calls; a panic of the library's is a BaseException.
NATIVE_ERRORS = (RuntimeError, OSError, ValueError)
# Few attempts, because callers retry with a pause of their own. In random order, so that a client made after a silence
# has a chance to begin with the other NameNode.
_SETTINGS = {"dfs.client.failover.max.attempts": "3", "dfs.client.failover.random.order": "true"}
_EXCEPTIONS: tuple[tuple[type[BaseException], type[KstreamError]], ...] = (
    (FileNotFoundError, NotFound),
    # The library's translation of AlreadyBeingCreatedException.
    (FileExistsError, Conflict),
    (OSError, Unavailable),
)
# A RuntimeError's text is Rust's debug form of the library's own error.
_REMOTE = re.compile(r'(?:Fatal)?RPCError\("(?P<java>[^"]+)", "(?P<words>.*)"\)', re.DOTALL)
_SECURITY = re.compile(
    r'(?:GSSAPIError\(.*?\}, (?P<code>\d+), "(?P<words>.*)"\)|SASLError|NoSASLMechanism|InvalidArgument)', re.DOTALL
)
# KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE
_KDC_AWAY = {str(code & 0xFFFFFFFF) for code in (-1765328228, -1765328164)}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def require_native(cluster: Cluster, identity: Identity) -> None:
    """Check what hdfs-native needs. Raises InvalidInput: when it can't assume the identity, or has no conf folder."""
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} has no hadoop_conf_dir, which hdfs-native needs")
    if not (identity.keytab or identity.ticket_cache):
        raise InvalidInput(f"{identity.principal} has neither a keytab nor a ticket cache")
    # hdfs-native takes the impersonated user only from there, for the whole process.
    ambient = os.environ.get("HADOOP_PROXY_USER") or None
    if ambient != identity.do_as:
        raise InvalidInput(
            f"hdfs-native impersonates HADOOP_PROXY_USER, which is {ambient or 'not set'}, "
            f"but this connection impersonates {identity.do_as or 'nobody'}; use the backend hdfs-debug"
        )


def native_client(cluster: Cluster, identity: Identity) -> hdfs_native.Client:
    """Make a client; its realm is that of the process (KRB5_CONFIG). Raises one of NATIVE_ERRORS: when it can't."""
    return hdfs_native.Client(
        cluster.default_fs,
        _SETTINGS,
        cluster.hadoop_conf_dir,
        kerberos_principal=identity.principal,
        kerberos_keytab=identity.keytab,
        kerberos_cache=None if identity.keytab else identity.ticket_cache,
    )


def native_error(error: BaseException, tried: str, cluster: Cluster, identity: Identity) -> KstreamError:
    """Return which error of ours it is."""
    kind, words = _kind_and_words(error)
    return kind(words, tried=tried, server=cluster.default_fs, principal=str(identity))


def _kind_and_words(error: BaseException) -> tuple[type[KstreamError], str]:
    kind = next((ours for foreign, ours in _EXCEPTIONS if isinstance(error, foreign)), None)
    if kind:
        return kind, _words(str(error))
    if remote := _REMOTE.match(str(error)):
        return error_of(remote["java"]), f"{simple_name(remote['java'])}: {_words(_unescaped(remote['words']))}"
    if security := _SECURITY.match(str(error)):
        kind = Unavailable if security["code"] in _KDC_AWAY else CredentialError
        return kind, _unescaped(security["words"] or str(error))
    return Unavailable, f"hdfs-native failed: {_words(str(error)) or type(error).__name__}"


def _words(text: str) -> str:
    """Return the text on one line, without the Java stack trace after it."""
    return " ".join(text.partition("\n\tat ")[0].split("\n"))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


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
