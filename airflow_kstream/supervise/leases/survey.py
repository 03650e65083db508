"""A scan of the open files below a folder: listed, measured, remembered and judged. It touches no lease.

Its memory between runs is a file in `state_dir` for each HDFS user that scans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

from pydantic import TypeAdapter

from airflow_kstream.clients.hdfs.fsck import open_files_by_fsck
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.authors import FolderKind
from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.leases.lease import Attribution, HolderStatus, LeaseRules, Search
from airflow_kstream.model.leases.open_file import FileHistory, FileState, OpenFile
from airflow_kstream.supervise.clusters.state_dir import make_own_folder, passed_over
from airflow_kstream.supervise.clusters.write_once import replace_file
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.findings import FileFinding, Survey, judged_finding
from airflow_kstream.supervise.leases.own_files import OwnFiles
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.visible_length import VisibleLengths

_SIGHTINGS = "sightings.json"
_VERSION: Literal[2] = 2
# A file that no scan has measured in this time is forgotten: it is gone, or its folder is no longer searched.
_REMEMBERED = timedelta(days=30)


@dataclass(frozen=True)
class _Written:
    """The file's content."""

    version: Literal[2]
    files: list[FileHistory]


_WRITTEN: TypeAdapter[_Written] = TypeAdapter(_Written)


class ScanHistory:
    """The memory of one HDFS user. The newest writer wins: a lost entry only costs another scan.

    What somebody else wrote in its place is as if it were not there; `tell` hears of it.
    """

    def __init__(self, hdfs: Hdfs, folder: str, tell: Callable[[str], None] = lambda line: None) -> None:
        self._hdfs = hdfs
        self._files = OwnFiles(hdfs, tell)
        self._folder = folder
        self._path = f"{folder}/{_SIGHTINGS}"

    def load(self) -> dict[str, FileHistory]:
        """Return the history by path. Unreadable content is dropped: that costs two more scans and never a file."""
        if all(file.name != _SIGHTINGS for file in self._files.list(self._folder)):
            return {}
        try:
            written = _WRITTEN.validate_json(self._files.text(self._path))
        except (NotFound, ValueError):
            return {}
        return {history.file.path: history for history in written.files}

    def save(self, history: Iterable[FileHistory], now: datetime) -> None:
        """Replace what is remembered; `now` is the NameNode's time. Raises Denied: where it may not write."""
        make_own_folder(self._hdfs, self._folder, FolderKind.LEASES.mode)
        kept = [one for one in history if now - one.steady_until <= _REMEMBERED]
        text = _WRITTEN.dump_json(_Written(_VERSION, kept), by_alias=True).decode()
        replace_file(self._hdfs, self._path, text, "640")


# Files are measured so many at a time: the second look at the first ones need not wait for the first at the last ones.
_BATCH = 250


class _NameNodeClock:
    """The NameNode's time when it was asked, and our count from there: its whole seconds would blur short times."""

    def __init__(self, asked: datetime) -> None:
        self._asked = asked
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self._asked + timedelta(seconds=time.monotonic() - self._began)


class Surveyor:
    """A repeatable scan with one identity's rights. `tell` gets a line for each fallback."""

    def __init__(self, session: LeaseSession, search: Search, rules: LeaseRules, tell: Callable[[str], None]) -> None:
        self._session = session
        self._search = search
        self._rules = rules
        self._tell = tell
        self._told: set[str] = set()
        # Its own memory: a concurrent run may overwrite the saved history, or nothing could be saved.
        self._seen: dict[str, FileHistory] = {}
        self._attributions = Attributions(session.base)
        self._visible = VisibleLengths(session.lengths)

    @property
    def path(self) -> str:
        return self._search.path

    def now(self) -> datetime:
        """Return the NameNode's time, counted from the last scan's beginning."""
        return self._clock.now()

    def scan(self) -> Survey:
        """List, measure, compare with earlier scans, remember, judge.

        Raises Unavailable: when no NameNode is active. Raises NotFound: when the folder does not exist. Raises
        InvalidInput: when a principal that is not a superuser names no folder, because the fallback walk would cross
        the whole namespace.
        """
        self._clock = _NameNodeClock(self._session.base.hdfs.now())
        kept = self._history()
        route, rows = self._rows()
        known, unreadable = self._seen | kept.load(), dict[str, str]()
        health = self._health(known.values())
        self._visible = VisibleLengths(self._session.lengths)
        self._seen = {
            history.file.path: history
            for batch in _batches(rows)
            for history in self._measured(self._searched(batch), known, unreadable)
        }
        self._remember(kept, known)
        # A DataNode that was silent may answer at the second look.
        self._visible = VisibleLengths(self._session.lengths)
        found = tuple(self._finding(history, health) for history in self._admitted(self._seen.values()))
        return Survey(self.now(), route, health, found, unreadable, self._rules)

    def look_again(self, survey: Survey) -> Survey:
        """Measure and judge the files of this survey once more, without another walk. Raises Unavailable: as `scan`."""
        unreadable = dict[str, str]()
        known = {finding.path: finding for finding in survey.findings}
        histories = {path: finding.history for path, finding in known.items()}
        found = tuple(
            self._finding(history, survey.health, known[history.file.path].attribution)
            for batch in _batches(history.file for history in histories.values())
            for history in self._admitted(self._measured(batch, histories, unreadable))
        )
        self._seen |= {finding.path: finding.history for finding in found}
        return replace(survey, at=self.now(), findings=found, unreadable={**survey.unreadable, **unreadable})

    def _history(self) -> ScanHistory:
        hdfs, folder = self._session.base.hdfs, self._session.folder
        if squatted := passed_over(hdfs, self._session.cluster.state_dir, FolderKind.LEASES, folder):
            self._tell_once(squatted)
        return ScanHistory(hdfs, folder, self._tell_once)

    def health(self) -> HdfsHealth:
        """Ask the active NameNode, before the files are looked at."""
        return self._health(self._seen.values())

    def _health(self, known: Iterable[FileHistory]) -> HdfsHealth:
        """Ask also whether all DataNodes have reported, if an earlier look saw a last block on none of them.

        An answer after a look would prove nothing: a DataNode may have reported in between.
        """
        health = self._session.jmx.health()
        blocks = (history.state.block for history in known)
        if any(block and not block.complete and not block.hosts for block in blocks):
            return replace(health, all_reported=self._session.jmx.all_reported(health.active))
        return health

    def _rows(self) -> tuple[str, Iterable[OpenFile]]:
        """List the open files by the cheapest means that this principal is allowed."""
        if self._session.rpc is not None:
            try:
                listed = list(self._session.rpc.open_files(self._search.path))
            except Denied:
                self._tell_once(
                    f"{self._session.identity} is not a superuser, so it may not list all open files: "
                    f"walking {self._search.path} instead"
                )
            except NotFound:
                # True of a router, and of NameNodes before 2.8.3.
                self._tell_once(f"this NameNode can't list open files: walking {self._search.path} instead")
            else:
                if not listed:
                    # The list can't tell a folder without open files from a missing folder.
                    self._session.base.hdfs.status(self._search.path)
                return "listOpenFiles", listed
        return "fsck", self._walk()

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._tell(line)

    def _walk(self) -> Iterator[OpenFile]:
        if self._search.path == "/":
            raise InvalidInput(
                "without superuser rights the walk would cross the whole namespace; name a folder",
                tried="list open files",
                principal=str(self._session.identity),
            )
        cluster = self._session.cluster
        return open_files_by_fsck(cluster.namenodes, self._session.identity, cluster.tls, self._search.path)

    def _searched(self, rows: list[OpenFile]) -> list[OpenFile]:
        """Return the rows that the search admits, with their holders: a walk names none, the NameNode does."""
        rows = [row for row in rows if self._search.admits_row(row)]
        nameless = [row.path for row in rows if row.holder is None]
        if self._session.rpc is None or not nameless:
            return rows
        holders = dict(zip(nameless, self._session.rpc.holders(nameless), strict=True))
        named = (replace(row, holder=row.holder or holders[row.path]) for row in rows)
        return [row for row in named if self._search.admits_row(row)]

    def _measured(
        self, rows: list[OpenFile], known: Mapping[str, FileHistory], unreadable: dict[str, str]
    ) -> Iterator[FileHistory]:
        """Yield each open file's history with this check, and note the files that can't be read."""
        began = self.now()
        states = self._states(rows)
        ended = self.now()
        for row, state in zip(rows, states, strict=True):
            if isinstance(state, FileState) and state.is_open:
                file = replace(row, file_id=state.file_id)
                yield _next(known.get(row.path), file, state, began, ended)
            elif isinstance(state, KstreamError) and not isinstance(state, NotFound):
                unreadable[row.path] = state.message

    def _states(self, rows: list[OpenFile]) -> list[FileState | KstreamError]:
        """Read the states, with a reader's length if a writer may be filling a block unknown to the NameNode."""
        states = self._session.states.states([row.path for row in rows])
        lengths = self._visible.of(states)
        return [
            replace(state, visible_length=lengths.get(state.path)) if isinstance(state, FileState) else state
            for state in states
        ]

    def _finding(self, history: FileHistory, health: HdfsHealth, attribution: Attribution | None = None) -> FileFinding:
        whose = attribution or self._attributions.of(history)
        return judged_finding(history, whose, HolderStatus(), self.now(), health, self._rules)

    def _admitted(self, histories: Iterable[FileHistory]) -> Iterator[FileHistory]:
        return (history for history in histories if self._search.admits_state(history, self.now()))

    def _remember(self, kept: ScanHistory, known: Mapping[str, FileHistory]) -> None:
        """Save what was seen, with what is known of files outside this search."""
        others = (other for other in known.values() if not self._search.admits_row(other.file))
        try:
            kept.save([*others, *self._seen.values()], self.now())
        except Denied as error:
            self._tell(f"this scan is not kept for the next run: {error}")


def _next(before: FileHistory | None, row: OpenFile, state: FileState, began: datetime, ended: datetime) -> FileHistory:
    return before.extended(row, state, began, ended) if before else FileHistory.begin(row, state, ended)


def _batches(rows: Iterable[OpenFile]) -> Iterator[list[OpenFile]]:
    left = iter(rows)
    return iter(lambda: list(islice(left, _BATCH)), [])
