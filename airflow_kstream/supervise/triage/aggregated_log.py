"""The bytes of one aggregated log on HDFS: read before they are needed, from DataNodes themselves where that can be."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from airflow_kstream.clients.hdfs.native_reads import NativeReads
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.log_scan.tfile import ReadAt
from airflow_kstream.supervise.clusters.session import ClusterSession

# In bytes, of one request; and how many of them are in flight or in memory.
_BLOCK, _BLOCKS = 8 << 20, 4


@contextmanager
def opened_log(session: ClusterSession, path: str, length: int) -> Iterator[ReadAt]:
    """Open the log for one reader, which goes forward most of the time. Raises while reading as Hdfs does."""
    reads = NativeFirst(_native(session, path), partial(session.hdfs.read_part, path))
    with ThreadPoolExecutor(_BLOCKS) as threads:
        try:
            yield ReadAhead(reads.read_at, length, threads).read_at
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _native(session: ClusterSession, path: str) -> ReadAt | None:
    try:
        return NativeReads(session.cluster, session.identity, path).read_at
    except InvalidInput:
        return None


class NativeFirst:
    """A file that is read natively, if at all, until that fails once; WebHDFS goes on at the same place.

    A host may reach the DataNodes' web ports alone, and a cluster's conf folder may be an old one.
    """

    def __init__(self, native: ReadAt | None, web: ReadAt) -> None:
        self._native, self._web = native, web

    def read_at(self, at: int, size: int) -> bytes:
        if native := self._native:
            try:
                return native(at, size)
            except KstreamError:
                self._native = None
        return self._web(at, size)


class ReadAhead:
    """A file in blocks: while one is used, the following ones are read. No others are kept."""

    def __init__(
        self, read_at: ReadAt, length: int, threads: ThreadPoolExecutor, block: int = _BLOCK, blocks: int = _BLOCKS
    ) -> None:
        self._read_at, self._length, self._threads = read_at, length, threads
        self._block, self._blocks = block, blocks
        self._read: dict[int, Future[bytes]] = {}

    def read_at(self, at: int, size: int) -> bytes:
        """Return `size` bytes, fewer at the end of the file."""
        end = min(at + size, self._length)
        numbers = range(at // self._block, -(-end // self._block))
        return b"".join(self._part(number, at, end) for number in numbers)

    def _part(self, number: int, at: int, end: int) -> bytes:
        begin = number * self._block
        self._want(number)
        return self._read[number].result()[max(at - begin, 0) : end - begin]

    def _want(self, first: int) -> None:
        last = -(-self._length // self._block)
        wanted = range(first, min(first + self._blocks, last))
        self._read = {number: self._read.get(number) or self._request(number) for number in wanted}

    def _request(self, number: int) -> Future[bytes]:
        begin = number * self._block
        return self._threads.submit(self._read_at, begin, min(self._block, self._length - begin))
