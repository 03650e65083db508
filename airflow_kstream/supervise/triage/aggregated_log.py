"""The bytes of one aggregated log on HDFS: read before they are needed, from DataNodes themselves where that can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.log_scan.chunks import ReadAt
from airflow_kstream.supervise.clusters.session import ClusterSession

# Takes a path, an offset and a number of bytes.
ReadPart = Callable[[str, int, int], bytes]

# In bytes, of one request; and how many of them are in flight or in memory.
_BLOCK, _BLOCKS = 8 << 20, 4


class NativeFirst:
    """Parts of files, read natively, if at all, until that fails once; WebHDFS goes on at the same place.

    A host may reach the DataNodes' web ports alone, and a cluster's conf folder may be an old one.
    """

    def __init__(self, native: ReadPart | None, web: ReadPart) -> None:
        self._native, self._web = native, web

    def read_part(self, path: str, at: int, size: int) -> bytes:
        if native := self._native:
            try:
                return native(path, at, size)
            except KstreamError:
                self._native = None
        return self._web(path, at, size)


def reads_of(session: ClusterSession) -> NativeFirst:
    """Return how this session reads whole files. Raises while reading as Hdfs does."""
    try:
        native = NativeReads(session.cluster, session.identity).read_part
    except InvalidInput:
        native = None
    return NativeFirst(native, session.hdfs.read_part)


@contextmanager
def opened_log(reads: NativeFirst, path: str, length: int) -> Iterator[ReadAt]:
    """Open a log for one reader, which goes forward most of the time."""
    with ThreadPoolExecutor(_BLOCKS) as threads:
        try:
            yield ReadAhead(partial(reads.read_part, path), length, threads).read_at
        finally:
            # What was not begun; the end of the block waits for the rest.
            threads.shutdown(wait=False, cancel_futures=True)


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
