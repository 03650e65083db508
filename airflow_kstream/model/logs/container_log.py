"""What a container's processes leave to look at: the ends of their logs, with the pages on which YARN's servers show
them, and dumps of their threads, of one moment and of several.

YARN aggregates the logs of one node's containers as a TFile with a record for each container.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.log_scan.chunks import Chunks, Damaged, ReadAt
from airflow_kstream.model.log_scan.tfile import LoggedFile, logged_files, next_file, records

# `java.base@17.0.15/java.lang.Object.wait(Native Method)`, `app//org.apache.spark...`, and locks on lines of their own.
_MODULE = re.compile(r"^[\w.@+-]*/{1,2}(?=[\w$.]+\()")

# In bytes: at most what such a page has beside a file's own content.
FRAME = 4096
# RMAppAttempt's link to the master container's logs, WebAppUtils.getRunningLogURL.
_LINK = re.compile(r"(?P<web>https?://[^/]+)/node/containerlogs/(?P<container>container_[\w]+)/(?P<user>[^/?#]+)/?")
_CONTAINER = re.compile(r"container_(?:e\d+_)?(?P<cluster>\d+)_(?P<number>\d+)_\d+_\d+")
_LENGTH = re.compile(rb"^LogLength:(\d{1,19})$", re.MULTILINE)
_CONTENTS = b"LogContents:\n"
_NO_CONTENTS = b"End of LogType:"


@dataclass(frozen=True)
class LoggedContainer:
    """A container, the base URL of its NodeManager's web server, and YARN's short name of its user."""

    id: str
    web: str
    user: str

    @classmethod
    def of_link(cls, link: str) -> LoggedContainer | None:
        """Return the container to whose logs a NodeManager's page links; None if it is no such link."""
        found = _LINK.fullmatch(link)
        named = found and _CONTAINER.fullmatch(found["container"])
        return cls(found["container"], found["web"], found["user"]) if found and named else None

    @property
    def application(self) -> str:
        found = _CONTAINER.fullmatch(self.id)
        if found is None:
            raise InvalidInput(f"{self.id} is not a container's id")
        return f"application_{found['cluster']}_{found['number']}"

    @property
    def host(self) -> str:
        """Return its node's name, without a port."""
        return self.web.partition("://")[2].rpartition(":")[0] or self.web.partition("://")[2]


@dataclass(frozen=True)
class LogTail:
    """The end of a container's file. `length` is that of the whole file in bytes."""

    text: str
    length: int


def tail_of(content: bytes, length: int) -> LogTail:
    """Return the content as text. The first line of a part is left out: half a setting looks like no secret."""
    whole = len(content) >= length
    return LogTail((content if whole else content.partition(b"\n")[2]).decode(errors="replace"), length)


def tail_on_page(page: bytes, name: str) -> LogTail | None:
    """Return what a page of `/containers/ID/logs/NAME` shows (NMWebServices.getLogs, LogToolUtils).

    Parts that were aggregated earlier come after the newest one, and are left out. None if the page has no end: it
    shows more than it should.

    Raises InvalidInput: when it is no such page.
    """
    if page.startswith(_NO_CONTENTS):
        return LogTail("", 0)
    head, found, content = page.partition(_CONTENTS)
    length = _LENGTH.search(head)
    if not found or length is None:
        raise InvalidInput("it is not a page of a container's log")
    # The job may write the same words; those of the page have a row of stars below them.
    end = re.search(rb"End of LogType:%b\b[^\n]*\n\*{20}" % re.escape(name.encode()), content)
    return tail_of(content[: end.start()], int(length[1])) if end else None


@dataclass(frozen=True)
class Process:
    """A process of an application, by its engine's name for it: `driver`, `executor 3`.

    `tasks` is how many it runs now; None for the one that leads the others.
    """

    name: str
    host: str
    tasks: int | None = None
    container: LoggedContainer | None = None

    def __str__(self) -> str:
        return f"{self.name} on {self.host}"


@dataclass(frozen=True)
class Thread:
    """A thread by its name, its state in Java's words, and its frames, the innermost first."""

    name: str
    state: str
    frames: tuple[str, ...]


@dataclass(frozen=True)
class ThreadDump:
    process: Process
    threads: tuple[Thread, ...]

    def lines(self) -> Iterator[str]:
        """Yield it as a person reads it: as jstack prints."""
        yield f"# {self.process}"
        for thread in self.threads:
            yield f'"{thread.name}" {thread.state}'
            yield from (f"\tat {frame}" for frame in thread.frames)
            yield ""


@dataclass(frozen=True)
class DumpRound:
    """Thread dumps of the processes that work, taken at one moment.

    `counts` is what the engine counted then, as text that is another one once anything has moved. `missing` are the
    errors of processes that could not be dumped.
    """

    dumps: tuple[ThreadDump, ...]
    counts: str = ""
    missing: tuple[KstreamError, ...] = ()


@dataclass(frozen=True)
class Hanging:
    """A thread of the job's work that stood at one place in all rounds: `what` it works on, and `where` it stands."""

    process: Process
    what: str
    thread: Thread
    where: str

    def __str__(self) -> str:
        return f"{self.process}, {self.what}: {self.where}"


@dataclass(frozen=True)
class Stillness:
    """The threads that stood still (`hanging`), and those of them that prove that the batch itself hangs (`stuck`).

    `doubt` is why the engine can't tell whether it hangs, empty if it can.
    """

    hanging: tuple[Hanging, ...] = ()
    stuck: tuple[Hanging, ...] = ()
    doubt: str = ""


def plain_frame(frame: str) -> str:
    """Return a frame without its module and without the addresses of the locks that it holds or waits for."""
    return _MODULE.sub("", frame.partition("\n")[0].strip())


def aggregated_files(read_at: ReadAt, length: int) -> Iterator[LoggedFile]:
    """Yield every file of every container.

    Raises InvalidInput: when the file is none of this format, which is that of LogAggregationTFileController.
    """
    try:
        for log in logged_files(read_at, length):
            yield replace(log, blocks=_readable(log.blocks))
    except Damaged as error:
        raise InvalidInput(str(error)) from None


def _readable(blocks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from blocks
    except Damaged as error:
        raise InvalidInput(str(error)) from None


def aggregated_tails(
    read_at: ReadAt, length: int, container: str, names: Collection[str], size: int
) -> Mapping[str, LogTail]:
    """Return the last `size` bytes of the container's files of these names; it lacks those that are not there.

    Raises InvalidInput: as `aggregated_files` does.
    """
    try:
        for key, value in records(read_at, length):
            # A string as DataOutput.writeUTF writes it: two bytes of length come first.
            if key[2:].decode(errors="replace") == container:
                return _tails(value, names, size)
    except Damaged as error:
        raise InvalidInput(str(error)) from None
    return {}


def _tails(value: Chunks, names: Collection[str], size: int) -> Mapping[str, LogTail]:
    tails: dict[str, LogTail] = {}
    while len(tails) < len(names) and not value.ended:
        name, length = next_file(value)
        taken = min(length, size) if name in names else 0
        value.skip(length - taken)
        if name in names:
            tails[name] = tail_of(value.take(taken), length)
    return tails
