"""A scan of the open files below a folder: listed, measured, remembered and judged. It touches no lease."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from airflow_kstream.clients.hdfs.fsck import open_files_by_fsck
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease import (
    Attribution,
    HolderKnowledge,
    HolderLiveness,
    HolderStatus,
    Judgement,
    JudgementContext,
    LeaseRules,
    Search,
)
from airflow_kstream.model.open_file import FileHistory, FileState, OpenFile
from airflow_kstream.policy.leases.judgement import judge_file, matches, worth_probing
from airflow_kstream.supervise.leases.attribution import Attributions
from airflow_kstream.supervise.leases.scan_history import ScanHistory, lease_folder
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.leases.visible_length import VisibleLengths

# States are read for this many rows at a time, so memory stays flat however many files are open.
_BATCH = 1000


@dataclass(frozen=True)
class Finding:
    """An open file, its writer, what is known of its holder, and its judgement.

    `worth_probing` is True if a probe of its holder is all that is missing to judge it.
    """

    history: FileHistory
    judgement: Judgement
    attribution: Attribution
    holder: HolderStatus = field(default_factory=HolderStatus)
    worth_probing: bool = False

    @property
    def path(self) -> str:
        return self.history.file.path

    @property
    def stuck(self) -> bool:
        return self.judgement.condition.stuck

    @property
    def unprobed(self) -> bool:
        """Tell whether it seems to need recovery, while its holder could not be probed."""
        return bool(self.holder.refusal) and self.holder.liveness is HolderLiveness.UNKNOWN and not self.stuck

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data: times in ISO 8601 UTC, durations in seconds, lengths in bytes."""
        history, block = self.history, self.history.state.block
        return {
            "path": self.path,
            "condition": self.judgement.condition.value,
            "why": self.judgement.why,
            "advice": self.judgement.advice,
            "holder": history.file.holder,
            "host": history.file.host,
            "owner": history.state.owner,
            "file_id": history.state.file_id,
            "open_since": history.open_since.isoformat(),
            "open_seconds": history.age(now).total_seconds(),
            "unchanged_seconds": history.unchanged_for.total_seconds(),
            "checks": history.checks,
            "length": history.state.length,
            "visible_length": history.state.visible_length,
            "block": block.id if block else None,
            "generation_stamp": block.generation_stamp if block else None,
            "datanodes": list(block.hosts) if block else [],
            "stream": self.attribution.stream,
            "application": self.attribution.application,
            "application_finished": self.attribution.finished,
            "attributed_by": self.attribution.how,
        }


@dataclass(frozen=True)
class Survey:
    """The result of one scan. `unreadable` are open files that the principal may not inspect, with the reason.

    As scanned, nothing is known of the holders; `judged_with` adds that.
    """

    at: datetime
    route: str
    health: HdfsHealth
    findings: tuple[Finding, ...]
    unreadable: Mapping[str, str]
    rules: LeaseRules = field(default_factory=LeaseRules)

    @property
    def worth_probing(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.worth_probing)

    def judged_with(self, knowledge: HolderKnowledge) -> Survey:
        """Return the survey with every file judged by this knowledge, and by no earlier one."""
        return replace(self, findings=tuple(self._judged(finding, knowledge) for finding in self.findings))

    def in_service(self) -> Survey:
        """Return the survey as it would be if the NameNode were not in safe mode."""
        return replace(self, health=replace(self.health, safe_mode=False)).judged_with({})

    def _judged(self, finding: Finding, knowledge: HolderKnowledge) -> Finding:
        holder = knowledge.get(finding.path, HolderStatus())
        file = finding.history.file
        named = replace(file, holder=holder.name or file.holder, host=holder.host or file.host)
        return _finding(
            replace(finding.history, file=named), finding.attribution, holder, self.at, self.health, self.rules
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(),
            "route": self.route,
            "findings": [finding.to_json(self.at) for finding in self.findings],
            "unreadable": dict(self.unreadable),
        }


class Surveyor:
    """A repeatable scan with one identity's rights. `tell` gets a line for each fallback."""

    def __init__(self, session: LeaseSession, search: Search, rules: LeaseRules, tell: Callable[[str], None]) -> None:
        self._session = session
        self._search = search
        self._rules = rules
        self._tell = tell
        self._told: set[str] = set()
        self._history = ScanHistory(session.base.hdfs, lease_folder(session.cluster.state_dir, session.identity))
        # Its own memory: a concurrent run may overwrite the saved history, or nothing could be saved.
        self._seen: dict[str, FileHistory] = {}
        self._attributions = Attributions(session.base)

    @property
    def path(self) -> str:
        return self._search.path

    def scan(self) -> Survey:
        """List, measure, compare with earlier scans, remember, judge.

        Raises Unavailable: when no NameNode is active. Raises NotFound: when the folder does not exist. Raises
        InvalidInput: when a principal that is not a superuser names no folder, because the fallback walk would cross
        the whole namespace.
        """
        began = self._session.base.hdfs.now()
        return self._looked_at(*self._rows(), began)

    def look_again(self, survey: Survey) -> Survey:
        """Measure and judge what the last scan found once more, without another walk. Raises Unavailable: as `scan`."""
        began = self._session.base.hdfs.now()
        again = self._looked_at(survey.route, [history.file for history in self._seen.values()], began)
        return replace(again, unreadable={**survey.unreadable, **again.unreadable})

    def _looked_at(self, route: str, rows: Iterable[OpenFile], began: datetime) -> Survey:
        health = self._session.jmx.health()
        states, unreadable = self._states(rows)
        now = self._session.base.hdfs.now()
        before = self._seen | self._history.load()
        history = {row.path: _next(before.get(row.path), row, state, began, now) for row, state in states}
        self._seen = history
        self._remember(history)
        findings = tuple(
            _finding(file, self._attributions.of(file), HolderStatus(), now, health, self._rules)
            for file in history.values()
            if self._is_searched(file, now)
        )
        return Survey(now, route, health, findings, unreadable, self._rules)

    def _rows(self) -> tuple[str, Iterable[OpenFile]]:
        """List the open files by the cheapest means that this principal is allowed."""
        if self._session.rpc is not None:
            try:
                listed = [row for row in self._session.rpc.open_files(self._search.path) if matches(row, self._search)]
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
        rows = open_files_by_fsck(cluster.namenodes, self._session.identity, cluster.tls, self._search.path)
        # A walk names no holders; the NameNode does, and they are compared with the search then.
        anyones = replace(self._search, holder=None)
        return (row for row in rows if matches(row, anyones))

    def _states(self, rows: Iterable[OpenFile]) -> tuple[list[tuple[OpenFile, FileState]], dict[str, str]]:
        known: list[tuple[OpenFile, FileState]] = []
        unreadable: dict[str, str] = {}
        visible = VisibleLengths(self._session.lengths)
        for batch in _batches(rows):
            for row, state in zip(self._with_holders(batch), self._measured(batch, visible), strict=True):
                if isinstance(state, NotFound) or not matches(row, self._search):
                    continue
                if isinstance(state, KstreamError):
                    unreadable[row.path] = state.message
                elif state.is_open:
                    known.append((replace(row, file_id=state.file_id), state))
        return known, unreadable

    def _with_holders(self, rows: list[OpenFile]) -> list[OpenFile]:
        nameless = [row.path for row in rows if row.holder is None]
        if self._session.rpc is None or not nameless:
            return rows
        holders = dict(zip(nameless, self._session.rpc.holders(nameless), strict=True))
        return [replace(row, holder=row.holder or holders[row.path]) for row in rows]

    def _measured(self, rows: list[OpenFile], visible: VisibleLengths) -> list[FileState | KstreamError]:
        """Read the states, with a reader's length if a writer may be filling a block unknown to the NameNode."""
        states = self._session.states.states([row.path for row in rows])
        lengths = visible.of(states)
        return [
            replace(state, visible_length=lengths.get(state.path)) if isinstance(state, FileState) else state
            for state in states
        ]

    def _is_searched(self, history: FileHistory, now: datetime) -> bool:
        owner, min_age = self._search.owner, self._search.min_age
        return owner in (None, history.state.owner) and history.age(now) >= min_age

    def _remember(self, history: Mapping[str, FileHistory]) -> None:
        """Save the history, keeping what others have learned meanwhile of files outside this search."""
        others = [other for other in self._history.load().values() if not matches(other.file, self._search)]
        try:
            self._history.save([*others, *history.values()])
        except Denied as error:
            self._tell(f"this scan is not kept for the next run: {error}")


def _finding(
    history: FileHistory, attribution: Attribution, holder: HolderStatus, now: datetime, health: HdfsHealth,
    rules: LeaseRules,
) -> Finding:  # fmt: skip
    """Judge the file, and tell whether a probe of its holder would decide it."""
    context = JudgementContext(
        now,
        holder=holder.liveness,
        active_since=health.active_since,
        safe_mode=health.safe_mode,
        refusal=holder.refusal,
        recovering=holder.recovering,
    )
    judgement = judge_file(history, context, rules)
    return Finding(history, judgement, attribution, holder, worth_probing(history, context, rules))


def _next(before: FileHistory | None, row: OpenFile, state: FileState, began: datetime, ended: datetime) -> FileHistory:
    return before.extended(row, state, began, ended) if before else FileHistory.begin(row, state, ended)


def _batches(rows: Iterable[OpenFile]) -> Iterator[list[OpenFile]]:
    batch: list[OpenFile] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
