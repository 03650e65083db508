"""Reading the bytes of logs in Spark's Python workers, without a JVM: from local files, or from HDFS through
hdfs-native where the worker has it, else over WebHDFS.

Shipped to the cluster beside `triage.py`; it imports nothing else but the standard library.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Overdue
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, unquote, urlsplit

ReadAt = Callable[[int, int], bytes]
# In bytes, of one request.
BLOCK = 8 << 20
# Where YARN puts the client's Hadoop conf in a container; a driver and its local workers have HADOOP_CONF_DIR.
_CONF = Path("__spark_conf__", "__hadoop_conf__")
# In seconds, for one answer: hdfs-native waits for a paused server for ever.
_PATIENCE = 30.0
# Few attempts, because WebHDFS goes on.
_ATTEMPTS = {"dfs.client.failover.max.attempts": "3", "dfs.client.failover.random.order": "true"}


@dataclass(frozen=True)
class Source:
    """A file: its URI, its name for people, and its length in bytes."""

    uri: str
    name: str
    length: int


@dataclass(frozen=True)
class WebHdfs:
    """The means to read HDFS without a JVM: base URLs of the NameNodes, and a delegation token. It is a secret."""

    addresses: tuple[str, ...] = ()
    token: str = ""

    def __repr__(self) -> str:
        return f"WebHdfs({self.addresses})"

    def read_at(self, path: str, at: int, size: int) -> bytes:
        """Return at most `size` bytes. Raises OSError: when no NameNode and DataNode give them."""
        why: Exception = OSError("no NameNode is known")
        for address in self.addresses:
            query = f"op=OPEN&offset={at}&length={size}" + (f"&delegation={self.token}" if self.token else "")
            try:
                return _get(f"{address}/webhdfs/v1{quote(path)}?{query}")
            except (OSError, http.client.HTTPException) as error:
                why = error
        raise OSError(f"read {path}: {_without_token(str(why), self.token)}")


def _get(url: str, redirects: int = 2) -> bytes:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=60)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        if answer.status in {302, 307} and redirects:
            return _get(answer.headers["Location"], redirects - 1)
        if answer.status != 200:
            raise OSError(f"{parts.netloc} answered {answer.status}")
        return answer.read()
    finally:
        connection.close()


def _without_token(text: str, token: str) -> str:
    return text.replace(token, "***") if token else text


@dataclass
class NativeHdfs:
    """HDFS through hdfs-native, authenticated as the current process: by its tokens in a container, or by its ticket.

    A DataNode hands the bytes over for a third of the CPU that WebHDFS costs it. `usable` ends with the first failure.
    """

    url: str
    usable: bool = True
    _client: Any = None
    _file: tuple[str, Any] = ("", None)

    def read_at(self, path: str, at: int, size: int) -> bytes:
        """Return `size` bytes. Raises OSError: when hdfs-native is not there, or can't read them in time."""
        answer: Future[bytes] = Future()
        # A daemon: it may wait for ever, but the worker must not wait for it.
        Thread(target=self._answer, args=(answer, path, at, size), daemon=True).start()
        try:
            return answer.result(_PATIENCE)
        except (OSError, Overdue) as error:
            self.usable = False
            raise OSError(f"read {path}: {error!r}") from None

    def _answer(self, answer: Future[bytes], path: str, at: int, size: int) -> None:
        try:
            answer.set_result(self._opened(path).read_range(at, size))
        except BaseException as error:  # the library's panics are no Exceptions
            answer.set_exception(OSError(repr(error)))

    def _opened(self, path: str) -> Any:
        if self._client is None:
            from hdfs_native import Client

            self._client = Client(self.url, _ATTEMPTS, str(_CONF) if _CONF.is_dir() else None)
        if self._file[0] != path:
            self._file = (path, self._client.read(path))
        return self._file[1]


# One for each process.
_native = cache(NativeHdfs)


@dataclass(frozen=True)
class Reader:
    """Bytes of any source, as a task reads them."""

    hdfs: WebHdfs

    def read_at(self, source: Source, at: int, size: int) -> bytes:
        """Return at most `size` bytes; fewer at the end. Raises OSError: when they can't be read."""
        parts = urlsplit(source.uri)
        size = max(min(size, source.length - at), 0)
        if not size:
            return b""
        if parts.scheme == "hdfs":
            return self._of_hdfs(f"hdfs://{parts.netloc}", unquote(parts.path), at, size)
        with Path(unquote(parts.path)).open("rb") as file:
            return os.pread(file.fileno(), size, at)

    def _of_hdfs(self, url: str, path: str, at: int, size: int) -> bytes:
        if (native := _native(url)).usable:
            with suppress(OSError):
                return native.read_at(path, at, size)
        return self.hdfs.read_at(path, at, size)

    def ahead(self, source: Source, ahead: int = BLOCK, until: int | None = None) -> ReadAt:
        """Return a function that reads ahead, to `until`: small reads of a server would cost a request each."""
        return _Ahead(self, source, ahead, source.length if until is None else until).read_at

    def blocks(self, source: Source, begin: int, end: int) -> Iterator[bytes]:
        for at in range(begin, end, BLOCK):
            yield self.read_at(source, at, min(BLOCK, end - at))


@dataclass
class _Ahead:
    """The last bytes that were read of a source: `least` of them, but not beyond `until` without need."""

    reader: Reader
    source: Source
    least: int
    until: int
    at: int = 0
    content: bytes = field(default=b"", repr=False)

    def read_at(self, at: int, size: int) -> bytes:
        if not self.at <= at <= at + size <= self.at + len(self.content):
            known = self.content[at - self.at :] if at >= self.at else b""
            begin = at + len(known)
            wanted = max(at + size - begin, min(self.least, self.until - begin))
            self.at, self.content = at, known + self.reader.read_at(self.source, begin, wanted)
        return self.content[at - self.at : at - self.at + size]
