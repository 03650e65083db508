"""recoverLease for many files over one connection, by hdfs-native."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Protocol

from airflow_kstream.clients.hdfs.native import NATIVE_ERRORS, native_client, native_error, require_native
from airflow_kstream.clients.lazy import hdfs_native
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

Answer = bool | KstreamError

_TRIED = "recover leases"


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
        require_native(cluster, identity)
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
        silent = self._silent()
        return [self._answer(answers[number][0]) if number in answers else silent for number in range(len(paths))]

    def close(self) -> None:
        if self._crew:
            self._crew.dismiss()
            self._crew = None

    def _muster(self) -> _Crew:
        try:
            return _Crew(native_client(self._cluster, self._identity), self._width)
        except NATIVE_ERRORS as error:
            raise self._mapped(error) from error

    def _answer(self, result: bool | BaseException) -> Answer:
        return result if isinstance(result, bool) else self._mapped(result)

    def _silent(self) -> Unavailable:
        words = f"no answer within {self._seconds:.0f} s: is it paused, or cut off?"
        return Unavailable(words, tried=_TRIED, server=self._cluster.default_fs, principal=str(self._identity))

    def _mapped(self, error: BaseException) -> KstreamError:
        return native_error(error, _TRIED, self._cluster, self._identity)


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
