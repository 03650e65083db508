"""How far a Flink job has come: its complete checkpoints on HDFS, and what its JobManager alone knows.

HDFS decides. The JobManager is asked only of a job whose newest checkpoint is not fresh, because a fresh one needed
every task: how many TaskManagers work, why the next checkpoint does not come, how often the job restarted inside. A
look costs two WebHDFS calls, one more for each newer folder without a checkpoint that is new or has changed, and at
most two GETs (a job's first look: three, and one more for a job that has restarted inside thrice or more); an answer
serves for a minute.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import KstreamError, LogsClosed, NotFound
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.flink_contract import Kept
from airflow_kstream.model.streams.flink_job import (
    FlinkCheckpointing,
    FlinkCheckpoints,
    FlinkOverview,
    FlinkReading,
    job_of,
)
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.policy.streams.flink.checkpoint_pace import (
    checkpoint_limit,
    checkpoint_trouble,
    declared_pace,
    failed_since,
)
from airflow_kstream.policy.streams.flink.jobmanager_log import Refusal, last_refusal
from airflow_kstream.policy.streams.flink.still_tasks import moved
from airflow_kstream.policy.streams.pulse.by_clock import LOOP
from airflow_kstream.supervise.streams.folder.engine import Newest

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession

LOG = "jobmanager.log"
CHECKPOINT = re.compile(r"chk-(\d{1,18})")
_METADATA = "_metadata"
# A checkpoint this young needed every task a moment ago: twice its interval, within these bounds.
_FRESH, _FRESHEST = timedelta(minutes=2), timedelta(seconds=30)
# Seconds: for which an answer serves; of all pages of one look; of one reading of a log, and its bytes.
SERVES, _WITHIN, _LOG_WITHIN, _LOG_SIZE = 60.0, 5.0, 5.0, 256 << 10
# A folder's time never goes back (INodeWithAdditionalFields.updateModificationTime): one that is this old changes with
# the next file in it, also by the clock of another NameNode that is behind by less.
_SKEW = timedelta(minutes=1)
# Pages of one look, and of the first.
_PAGES, _FIRST = 2, 3
# Seconds after which a job that nobody looks at is forgotten.
_FORGOTTEN = 3600.0
T = TypeVar("T")


@dataclass
class KnownJob:
    """Facts that are known of one job. `base` is the number of a checkpoint and how often the job had restarted inside
    until then, `restarts` that of a checkpoint and how often it has since. `incomplete` are the folders without a
    checkpoint, with their times: until that changes nothing has come into them. `read` are the last two answers on what
    the job had read, `names` are those of its counts."""

    used: float = 0.0
    newest: tuple[int, FileStatus] | None = None
    incomplete: dict[int, datetime] = field(default_factory=dict)
    pages: dict[str, tuple[float, Any]] = field(default_factory=dict)
    base: tuple[int, int] | None = None
    restarts: tuple[int, int] | None = None
    read: tuple[FlinkReading | None, FlinkReading | None] = (None, None)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    starves_since: float | None = None
    refusal: tuple[float, Refusal] | None = None
    kept: tuple[float, Kept | None] | None = None


@dataclass
class JobMemory:
    """The memory of one process for the jobs that it looks at, by their applications.

    A triggerer has a thread for each cluster, so nothing here iterates over a dict that another thread may change.
    """

    clock: Callable[[], float] = time.monotonic
    _known: dict[tuple[str, str], KnownJob] = field(default_factory=dict)

    def of(self, application: str, job: str) -> KnownJob:
        now = self.clock()
        if (application, job) not in self._known:
            for key in [key for key, known in list(self._known.items()) if now - known.used >= _FORGOTTEN]:
                self._known.pop(key, None)
        known = self._known.setdefault((application, job), KnownJob(used=now))
        known.used = now
        return known


# Each look makes an engine of its own.
HERE = JobMemory()


def flink_progress(
    session: ClusterSession,
    path: str,
    newest: Newest,
    stream: StreamId,
    conf: Mapping[str, str],
    memory: JobMemory = HERE,
) -> Checkpoint:
    """Read the checkpoints of the newest generation's job, which lie below `path`.

    A generation that has completed none stands where it was claimed. Raises Unavailable: when HDFS is away.
    """
    claim = newest.claim
    job = job_of(stream, claim) if claim else None
    if claim is None or job is None:
        return Checkpoint(path, None)
    app = newest.application
    known = memory.of(app.id if app else "", job)
    found = _newest(session.hdfs, f"{path.rstrip('/')}/{job}", known)
    point = _point(path, claim, found)
    look = _Look(session, app, job, known, memory.clock(), conf)
    return replace(point, clock=look.clockwork(found[0] if found else -1, _age(session, found)))


def _newest(hdfs: Hdfs, folder: str, known: KnownJob) -> tuple[int, FileStatus] | None:
    """Return the newest complete checkpoint, None if there is none. One is complete once its _metadata is closed."""
    entries = hdfs.matching(folder, lambda entry: entry.is_folder and bool(CHECKPOINT.fullmatch(entry.name)))
    written = {int(entry.name.removeprefix("chk-")): entry.modified for entry in entries}
    known.incomplete = {number: at for number, at in known.incomplete.items() if written.get(number) == at}
    for number in sorted(written, reverse=True):
        if known.newest and known.newest[0] == number:
            return known.newest
        if number in known.incomplete:
            continue
        try:
            status = hdfs.status(f"{folder}/chk-{number}/{_METADATA}")
        except NotFound:
            if hdfs.now() - written[number] > _SKEW:
                known.incomplete[number] = written[number]
            continue
        if status.length:
            known.newest = number, status
            return known.newest
    return None


def _point(path: str, claim: Claim, found: tuple[int, FileStatus] | None) -> Checkpoint:
    if found:
        number, status = found
        times = {number: status.modified}
        return Checkpoint(path, None, times, times, writers=frozenset({status.owner} - {""}))
    begun = claim.position_of(path) if claim.submitted_by_us else None
    times = {begun.commit: claim.claimed_at} if begun and begun.commit >= 0 else {}
    return Checkpoint(path, None, times, times)


def _age(session: ClusterSession, found: tuple[int, FileStatus] | None) -> timedelta | None:
    return session.hdfs.now() - found[1].modified if found else None


@dataclass
class _Look:
    """One look at the JobManager of a job. All times are seconds of the memory's clock."""

    session: ClusterSession
    app: Application | None
    job: str
    known: KnownJob
    now: float
    conf: Mapping[str, str]
    left: int = 0
    first: bool = False
    pages: FlinkPages | None = None

    def clockwork(self, number: int, age: timedelta | None) -> Clockwork:
        pace = self._known_page("pace") or declared_pace(self.conf)
        runs = self.app is not None and self.app.state is ApplicationState.RUNNING
        fresh = min(max(2 * (pace.interval or timedelta()), _FRESHEST), _FRESH)
        if not runs or (age is not None and age <= fresh):
            self.known.starves_since, self.known.refusal = None, None
            return _clockwork(pace)
        late = age is None or age > checkpoint_limit(pace)
        overview, seen, own, read = self._asked(late=late)
        pace = own or pace
        refusal = self._refusal(overview)
        return replace(
            _clockwork(pace),
            trouble=refusal.unread or (checkpoint_trouble(seen) if seen else ""),
            workers=overview.taskmanagers if overview and overview.running else None,
            refusal=refusal.words,
            waits=refusal.waits,
            restarts=self._restarts(number, seen),
            moves=moved(*self.known.read) if late and read else None,
        )

    def _asked(
        self, *, late: bool
    ) -> tuple[FlinkOverview | None, FlinkCheckpoints | None, FlinkCheckpointing | None, FlinkReading | None]:
        """Ask what is missing or old, the most telling first. Without the first answer nothing else is asked."""
        self.first = not self.known.pages
        self.left = _FIRST if self.first else _PAGES
        try:
            overview = self._page("overview", FlinkPages.overview)
            if overview is None:
                return None, None, self._known_page("pace"), None
            seen = self._page("checkpoints", lambda pages: pages.checkpoints(self.job))
            if seen and seen.restored >= LOOP and self.known.base is None:
                self.left += 1
                self._page("failures", lambda pages: pages.failures(self.job))
            pace = self._known_page("pace") or self._page("pace", lambda pages: pages.checkpointing(self.job))
            read = (
                self._page("read", lambda pages: pages.reading(self.job, self.known.names), self._heard)
                if late
                else None
            )
        finally:
            if self.pages:
                self.pages.close()
        return overview, seen, pace, read

    def _page(
        self, name: str, ask: Callable[[FlinkPages], T], heard: Callable[[T | None], None] = lambda answer: None
    ) -> T | None:
        """Return an answer, None if there was none; an older one where this look may ask nothing more."""
        at, before = self.known.pages.get(name, (None, None))
        if self.left == 0 or (at is not None and self.now - at < SERVES):
            return before
        self.left -= 1
        try:
            if self.pages is None:
                app, session = self.app, self.session
                where = session.yarn.active()
                self.pages = FlinkPages(where, app.id if app else "", session.identity, session.cluster.tls, _WITHIN)
            answer = ask(self.pages)
        except KstreamError:
            answer = None
        self.known.pages[name] = self.now, answer
        heard(answer)
        return answer

    def _known_page(self, name: str) -> Any:
        return self.known.pages.get(name, (None, None))[1]

    def _heard(self, reading: FlinkReading | None) -> None:
        self.known.read = self.known.read[1], reading

    def _restarts(self, number: int, seen: FlinkCheckpoints | None) -> int:
        """Return how often it restarted since this checkpoint, as last known while the JobManager is silent."""
        known = self.known
        if seen is None:
            return known.restarts[1] if known.restarts and known.restarts[0] == number else 0
        if known.base is None:
            # Who begins to look finds a loop that lasts, as the watcher before did.
            failures = self._known_page("failures") or ()
            known.base = number, seen.restored - failed_since(number, seen, failures)
        if known.base[0] != number or seen.restored < known.base[1]:
            known.base = number, seen.restored
        known.restarts = number, seen.restored - known.base[1]
        return known.restarts[1]

    def _refusal(self, overview: FlinkOverview | None) -> Refusal:
        """Return why no TaskManager works, as the JobManager's log tells it; nothing if one works.

        After the first look, the log is read only of a job that has had no TaskManager for a minute: most get one
        within that.
        """
        known = self.known
        if overview is None or not overview.starves:
            known.starves_since, known.refusal = None, None
            return Refusal()
        known.starves_since = self.now if known.starves_since is None else known.starves_since
        if known.refusal and self.now - known.refusal[0] < SERVES:
            return known.refusal[1]
        if self.first or self.now - known.starves_since >= SERVES:
            known.refusal = self.now, self._read_refusal()
        return known.refusal[1] if known.refusal else Refusal()

    def _read_refusal(self) -> Refusal:
        container = LoggedContainer.of_link(self.app.logs_url) if self.app else None
        if container is None:
            return Refusal()
        logs = ContainerLogs(self.session.cluster, self.session.identity)
        try:
            tails = logs.live_tails(container, (LOG,), _LOG_SIZE, _LOG_WITHIN)
        except LogsClosed as error:
            # Its task restarts it for a dead token alone, and only that log names one.
            return Refusal(unread=f"the JobManager's log has the reason, and can't be read: {error.without_advice}")
        except KstreamError:
            return Refusal()
        return last_refusal(tails[LOG].text) if LOG in tails else Refusal()


def _clockwork(pace: FlinkCheckpointing) -> Clockwork:
    return Clockwork("checkpoint", "TaskManager", checkpoint_limit(pace), pace.interval)
