"""recoverLease for many files over one connection, by hdfs-native."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Protocol

from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.clients.rpc.java_exceptions import error_of, simple_name
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    InvalidInput,
    KstreamError,
    NotFound,
    Unavailable,
)
from airflow_kstream.model.identity import Identity

Answer = bool | KstreamError

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


class LeaseRecoverer(Protocol):
    """A client that requests lease recoveries from the NameNode. It does not wait for their end.

    `batch` is the largest number of paths for one call. `latency` is the NameNode's mean response time in the last
    call, in seconds; 0.0 if unknown.
    """

    @property
    def batch(self) -> int: ...

    @property
    def latency(self) -> float: ...

    def request_recovery(self, paths: Sequence[str]) -> list[Answer]:
        """Return for each path, in order: True if it is closed now, False if its recovery was begun, else the error.

        Errors are NotFound, Denied, Conflict with the NameNode's words, and Unavailable, even if the request may have
        arrived.
        """

    def close(self) -> None: ...


class NativeRecoverer:
    """A client with `width` requests in flight. It never writes, so that nothing renews the leases it takes over.

    `seconds` is the longest wait with no answer at all: hdfs-native itself waits for a paused NameNode forever. The
    realm is that of the process (KRB5_CONFIG). Not for several threads. It uses hdfs-native's blocking client: the one
    for asyncio (0.14.7) panics as soon as it has to wait between two NameNodes.

    Raises InvalidInput: when hdfs-native can't assume the identity.
    """

    batch = 500

    def __init__(self, cluster: Cluster, identity: Identity, width: int = 32, seconds: float = 20.0) -> None:
        _check(cluster, identity)
        self._cluster = cluster
        self._identity = identity
        self._width = width
        self._seconds = seconds
        self._crew: _Crew | None = None
        self.latency = 0.0

    def request_recovery(self, paths: Sequence[str]) -> list[Answer]:
        crew = self._crew or self._muster()
        # An interrupted call leaves requests behind that nobody waits for; this crew begins nothing after them.
        self._crew = None
        answers = crew.ask(paths, self._seconds)
        if len(answers) == len(paths):
            self._crew = crew
        took = [seconds for _, seconds in answers.values()]
        self.latency = sum(took) / len(took) if took else self._seconds
        silent = self._error(Unavailable, f"no answer within {self._seconds:.0f} s: is it paused, or cut off?")
        return [self._answer(answers[number][0]) if number in answers else silent for number in range(len(paths))]

    def close(self) -> None:
        if self._crew:
            self._crew.dismiss()
            self._crew = None

    def _muster(self) -> _Crew:
        try:
            return _Crew(self._client(), self._width)
        except (RuntimeError, OSError, ValueError) as error:
            raise self._mapped(error) from error

    def _client(self) -> hdfs_native.Client:
        identity = self._identity
        return hdfs_native.Client(
            self._cluster.default_fs,
            _SETTINGS,
            self._cluster.hadoop_conf_dir,
            kerberos_principal=identity.principal,
            kerberos_keytab=identity.keytab,
            kerberos_cache=None if identity.keytab else identity.ticket_cache,
        )

    def _answer(self, result: bool | BaseException) -> Answer:
        return result if isinstance(result, bool) else self._mapped(result)

    def _mapped(self, error: BaseException) -> KstreamError:
        kind = next((ours for foreign, ours in _EXCEPTIONS if isinstance(error, foreign)), None)
        if kind:
            return self._error(kind, _words(str(error)))
        remote = _REMOTE.match(str(error))
        if remote:
            words = f"{simple_name(remote['java'])}: {_words(_unescaped(remote['words']))}"
            return self._error(error_of(remote["java"]), words)
        security = _SECURITY.match(str(error))
        if security:
            kind = Unavailable if security["code"] in _KDC_AWAY else CredentialError
            return self._error(kind, _unescaped(security["words"] or str(error)))
        return self._error(Unavailable, f"hdfs-native failed: {_words(str(error)) or type(error).__name__}")

    def _error(self, kind: type[KstreamError], words: str) -> KstreamError:
        return kind(words, tried="recover leases", server=self._cluster.default_fs, principal=str(self._identity))


class _Crew:
    """Threads that share a client. They are daemons: a paused NameNode may block one, but never the process."""

    def __init__(self, client: hdfs_native.Client, width: int) -> None:
        self._client = client
        self._todo: SimpleQueue[tuple[int, str] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[int, bool | BaseException, float]] = SimpleQueue()
        self._dismissed = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(width)]
        for thread in self._threads:
            thread.start()

    def ask(self, paths: Sequence[str], seconds: float) -> dict[int, tuple[bool | BaseException, float]]:
        """Return answer and duration in seconds by index in `paths`; after silence only some, and dismiss the crew."""
        for job in enumerate(paths):
            self._todo.put(job)
        answers: dict[int, tuple[bool | BaseException, float]] = {}
        try:
            while len(answers) < len(paths):
                number, answer, took = self._done.get(timeout=seconds)
                answers[number] = (answer, took)
        except BaseException as error:
            self.dismiss()
            if not isinstance(error, Empty):
                raise
        return answers

    def dismiss(self) -> None:
        self._dismissed.set()
        for _ in self._threads:
            self._todo.put(None)

    def _work(self) -> None:
        while (job := self._todo.get()) is not None and not self._dismissed.is_set():
            number, path = job
            began = time.monotonic()
            answer = self._recover(path)
            self._done.put((number, answer, time.monotonic() - began))

    def _recover(self, path: str) -> bool | BaseException:
        # The library does not repeat a request whose answer was lost; this one may be repeated.
        for retries_left in (1, 0):
            try:
                return self._client.recover_lease(path)
            except (FileNotFoundError, FileExistsError) as error:
                return error
            except OSError as error:
                # Never repeat a request that nobody waits for any longer: the file may be another writer's by now.
                if not retries_left or self._dismissed.is_set():
                    return error
            except BaseException as error:  # its panics are no Exceptions, and an answer is owed
                return error
        raise AssertionError("unreachable")


def _check(cluster: Cluster, identity: Identity) -> None:
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


def _words(text: str) -> str:
    """Return the text on one line, without the Java stack trace after it."""
    return " ".join(text.partition("\n\tat ")[0].split("\n"))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)
