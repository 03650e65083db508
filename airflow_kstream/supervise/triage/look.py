"""One look at logs, as a person or a task requests it: of this host, or of an application of a cluster, live or
aggregated, with YARN's own words.

Aggregated logs are read before they are needed, from DataNodes themselves where that can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_kstream.clients.container_logs import MOST_BYTES, ContainerLogs
from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.clients.local.log_files import files_below
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.log_scan.chunks import ReadAt
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.logs.container_log import LoggedContainer, aggregated_files
from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.model.logs.signature import Catalogue
from airflow_kstream.model.streams.generation_end import NOTHING_KEPT, KeptGeneration
from airflow_kstream.policy.triage.sources import ScannedLog
from airflow_kstream.policy.triage.verdict import as_stopped, diagnose
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.triage.scan import THREADS, catalogue_with, scanner_of, triage_path, why_unread
from airflow_kstream.supervise.triage.spark import SparkRun, application_logs, triage_with_spark

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


# The files that Spark, Flink and MapReduce write in their containers.
_NAMES = ("stderr", "stdout", "jobmanager.log", "taskmanager.log", "syslog")
_DIAGNOSTICS = "diagnostics of YARN"


@dataclass(frozen=True)
class LogLimits:
    """The limits of a look without Spark: containers and seconds for each, where they live; bytes, where they ended."""

    containers: int = 40
    seconds: float = 10.0
    size: int = 4 << 30


@dataclass
class _Scanned:
    scanner: Scanner
    logs: list[ScannedLog] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, name: str, blocks: Iterator[bytes]) -> None:
        self.logs.append(ScannedLog(name, self.scanner.scan(blocks, THREADS)))


def triage_application(
    session: ClusterSession,
    application_id: str,
    catalogue: Catalogue,
    zone: tzinfo | None = None,
    kept: KeptGeneration = NOTHING_KEPT,
) -> Diagnosis:
    """Judge an application by YARN's diagnostics and the logs that can be read of it now.

    While it runs these are the last 10 MB of each file of its containers, and its logs on HDFS once it has ended, or
    those `kept` by its supervisor. What can't be read is named in the verdict. One that its supervisor stopped has not
    failed, unless its logs show a cause.

    Raises NotFound: when the ResourceManager doesn't know it. Raises Denied, Unavailable: when nothing can be read.
    """
    limits, app = LogLimits(), session.yarn.application(application_id)
    scanned = _Scanned(scanner_of(catalogue))
    if app.alive:
        _scan_live(session, app, scanned, limits)
    else:
        _scan_ended(session, app, scanned, limits, kept)
    if app.diagnostics and not app.succeeded and not kept.stopped:
        scanned.add(_DIAGNOSTICS, iter([app.diagnostics.encode()]))
    if not scanned.logs and not kept.stopped:
        raise NotFound("; ".join(scanned.unread) or "it has no logs", tried=f"read the logs of {application_id}")
    verdict = diagnose(scanned.logs, catalogue, zone, unread=scanned.unread, runs=app.alive)
    return as_stopped(verdict, kept.stopped) if kept.stopped else verdict


def _scan_live(session: ClusterSession, app: Application, scanned: _Scanned, limits: LogLimits) -> None:
    """Read the ends of what runs: the master first, whose container has the lowest id."""
    containers = session.yarn.live_containers(app.id)
    _scan_containers(session, containers[: limits.containers], scanned, limits)
    if more := len(containers) - limits.containers:
        scanned.unread += [f"{more} further containers"] if more > 0 else []


def _scan_ended(
    session: ClusterSession, app: Application, scanned: _Scanned, limits: LogLimits, kept: KeptGeneration
) -> None:
    """Read what was aggregated; where nothing was, what was kept, or what the driver's NodeManager may have still."""
    left = limits.size
    try:
        logs, reads = ContainerLogs(session.cluster, session.identity), reads_of(session)
        for path, file in logs.aggregated_nodes(session.hdfs, app.id, app.user):
            if file.length > left:
                scanned.unread.append(f"{path}: it has {file.length} bytes, which is a job for Spark")
                continue
            left -= file.length
            _scan_aggregated(reads, path, file, scanned)
    except KstreamError as error:
        scanned.unread.append(f"its aggregated logs: {error.without_advice}")
    scanned.unread += kept.unread
    if not scanned.logs:
        for path, text in kept.logs.items():
            scanned.add(path, iter([text.encode()]))
    driver = LoggedContainer.of_link(app.logs_url)
    if driver and not scanned.logs:
        _scan_containers(session, (driver,), scanned, limits)


def _scan_aggregated(reads: NativeFirst, path: str, file: FileStatus, scanned: _Scanned) -> None:
    """Read one file. Raises Unavailable: when HDFS is away, which concerns the others, too."""
    try:
        with opened_log(reads, path, file.length) as read_at:
            for log in aggregated_files(read_at, file.length):
                scanned.add(f"{path.rpartition('/')[2]}#{log.container}/{log.name}", log.blocks)
    except Unavailable:
        raise
    except Exception as error:  # Whatever a file does to its reader: the others are read.
        scanned.unread.append(f"{path}: {why_unread(error)}")


def _scan_containers(
    session: ClusterSession, containers: tuple[LoggedContainer, ...], scanned: _Scanned, limits: LogLimits
) -> None:
    logs = ContainerLogs(session.cluster, session.identity)
    for container in containers:
        try:
            tails = logs.live_tails(container, _NAMES, MOST_BYTES, limits.seconds)
        except KstreamError as error:
            scanned.unread.append(f"{container.id}: {error.without_advice}")
            continue
        for name, tail in tails.items():
            scanned.add(f"{container.id}/{name}", iter([tail.text.encode()]))
            if tail.length > MOST_BYTES:
                scanned.unread.append(f"{container.id}/{name}: all but the last {MOST_BYTES} of {tail.length} bytes")


@dataclass(frozen=True)
class TriageLook:
    """The catalogue, the zone of logs that don't say theirs, and how Spark runs; without it this process scans."""

    catalogue: Catalogue
    zone: tzinfo | None = None
    spark: SparkRun | None = None

    @classmethod
    def of(
        cls, signatures: Sequence[str | Path] = (), time_zone: str | None = None, spark: str | None = None
    ) -> TriageLook:
        """Read files of signatures. Raises InvalidInput: when one is wrong, or the zone has no such name."""
        run = SparkRun(spark) if spark else None
        return cls(catalogue_with(Path(file) for file in signatures), zone_of(time_zone), run)

    def of_path(self, target: str) -> Diagnosis:
        """Judge the logs in a file or a folder of this host. Raises InvalidInput: when there is none to be read."""
        path = Path(target)
        if self.spark is None:
            return triage_path(path, self.catalogue, self.zone)
        # Refuse what is not there before Spark takes seconds to start.
        files_below(path)
        return triage_with_spark([path.resolve().as_uri()], self.catalogue, self.spark, zone=self.zone)

    def of_application(
        self, session: ClusterSession, application_id: str, kept: KeptGeneration = NOTHING_KEPT
    ) -> Diagnosis:
        """Judge an application of the cluster; with Spark by its aggregated logs alone. Raises as both do."""
        if self.spark is None:
            return triage_application(session, application_id, self.catalogue, self.zone, kept=kept)
        logs = application_logs(session, application_id)
        return triage_with_spark(logs, self.catalogue, self.spark, session, self.zone)


def zone_of(name: str | None) -> tzinfo | None:
    """Return the zone of this name. Raises InvalidInput: when there is none."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"the time zone is {name!r}; allowed is a name such as Europe/Berlin") from None
