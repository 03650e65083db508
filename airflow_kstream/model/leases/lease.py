"""Judgements about an open file's lease, what may be done about it, and the target and the outcome of its recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from airflow_kstream.model.clusters.hdfs_path import is_below
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.leases.open_file import FileHistory, Fingerprint, OpenFile
from airflow_kstream.model.plain import Group, fields_of


class HolderLiveness(StrEnum):
    """The liveness of a lease's holder: does it still renew the lease? UNKNOWN also if it was not probed."""

    DEAD = "dead"
    RENEWING = "renewing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HolderStatus:
    """The knowledge about the holder of one file.

    `refusal` is why the liveness stayed UNKNOWN, and `retryable` whether a later probe may succeed without any change.
    `name` and `host` are known if the NameNode named the holder. `recovering`: a recovery runs, such as one that the
    probe began. `closed`: the probe found the file closed; then either the probe closed it, because its last block was
    complete, or its writer did. `again` is when the holder can be asked again if its lease was renewed by a probe of
    another run, which found it dead.
    """

    liveness: HolderLiveness = HolderLiveness.UNKNOWN
    refusal: str = ""
    retryable: bool = False
    name: str | None = None
    host: str | None = None
    recovering: bool = False
    closed: bool = False
    again: datetime | None = None


# By path. A file that is absent has an unknown holder.
HolderKnowledge = Mapping[str, HolderStatus]


class FileCondition(StrEnum):
    """The condition of an open file.

    HOLDER_DEAD and LEAKED files are stuck: no process will close them, or one holds them without progress. YOUNG and
    UNWATCHED files are undecided; an IDLE one does not grow, and nothing shows that its holder is dead.
    """

    CLOSED = "closed"
    YOUNG = "young"
    UNWATCHED = "not watched long enough"
    GROWING = "growing"
    IDLE = "idle"
    HOLDER_DEAD = "holder dead"
    LEAKED = "holder alive without progress"
    UNKNOWN = "unknown"
    UNRECOVERABLE = "unrecoverable"

    @property
    def stuck(self) -> bool:
        return self in {FileCondition.HOLDER_DEAD, FileCondition.LEAKED, FileCondition.UNRECOVERABLE}


@dataclass(frozen=True)
class LeaseRules:
    """The thresholds from which an open file counts as stuck.

    `min_age`: younger files are left alone. A dead holder's file must be unchanged for `settle`, in at least `checks`
    checks; a living holder's for `leak_after`. `blackout`: the time after a failover in which every lease counts as
    just renewed (HdfsConstants.LEASE_SOFTLIMIT_PERIOD, 60 s, and a margin). `silent_after`: the time after which a
    DataNode that does not report counts as lost (the NameNode's own default is 10 min 30 s).
    """

    min_age: timedelta = timedelta(minutes=10)
    settle: timedelta = timedelta(seconds=10)
    checks: int = 2
    leak_after: timedelta = timedelta(hours=1)
    blackout: timedelta = timedelta(seconds=70)
    silent_after: timedelta = timedelta(seconds=630)

    def __post_init__(self) -> None:
        for name in ("min_age", "settle", "leak_after", "blackout", "silent_after"):
            if getattr(self, name) < timedelta(0):
                raise InvalidInput(f"{name} is {getattr(self, name)}; allowed is a duration of 0 s or more")
        if self.checks < 2:
            raise InvalidInput(
                f"checks is {self.checks}; one check can't tell a growing file from a stuck one: allowed is >= 2"
            )


@dataclass(frozen=True)
class JudgementContext:
    """The facts that a judgement needs beside the file's history. Times are the NameNode's.

    `active_since`: when this NameNode became active, None if unknown. `safe_mode`: it is in safe mode now. `refusal`:
    why the holder's liveness is unknown, in the NameNode's words or the reason why there was no probe. `recovering`:
    the NameNode answered that it already recovers the file. `all_reported`: it knows all blocks of all live DataNodes.
    """

    now: datetime
    holder: HolderLiveness = HolderLiveness.UNKNOWN
    active_since: datetime | None = None
    safe_mode: bool = False
    refusal: str = ""
    recovering: bool = False
    all_reported: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The condition of a file, the reason, and advice. `brief` is the reason without the file's figures."""

    condition: FileCondition
    why: str
    advice: str = ""
    brief: str = ""

    @property
    def sort(self) -> str:
        """Return the category to count it under, among many files."""
        return self.brief or self.condition.value


@dataclass(frozen=True)
class Approval:
    """The approval to recover a file whose holder is alive.

    `allowed`: its path is on the allow-list. `application_finished`: the ResourceManager says that the application that
    wrote it has finished; None if unknown. `approved_by`: the person who approved this very path. `given_up`: the job
    that wrote it runs, and will not touch it again.
    """

    allowed: bool = False
    application_finished: bool | None = None
    approved_by: str | None = None
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision whether a file may be recovered now, and the rule behind it."""

    granted: bool
    why: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """The writer of a file, as far as it can be determined. `finished` is None if the application is unknown."""

    stream: str | None = None
    application: str | None = None
    host: str | None = None
    finished: bool | None = None
    how: str = ""


@dataclass(frozen=True)
class Search:
    """A search for open files: those below `path` that match everything given.

    At least one of `patterns`, which are shell patterns, must match: the file's name or, if the pattern has a slash,
    the whole path.
    """

    path: str = "/"
    patterns: tuple[str, ...] = ()
    holder: str | None = None
    host: str | None = None
    owner: str | None = None
    min_age: timedelta = field(default=timedelta(0))

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise InvalidInput(f"path is {self.path!r}; allowed is an absolute HDFS path")

    def admits_row(self, file: OpenFile) -> bool:
        """Return False if what a listing tells of a file rules it out. A holder that it doesn't name rules out none."""
        return (
            is_below(self.path, file.path)
            and (not self.patterns or any(path_matches(file.path, pattern) for pattern in self.patterns))
            and (self.holder is None or file.holder in (None, self.holder))
            and self.host in (None, file.host)
        )

    def admits_state(self, history: FileHistory, now: datetime) -> bool:
        """Return True if a file whose row was admitted also has the owner, the age, and the very holder."""
        return (
            self.holder in (None, history.file.holder)
            and self.owner in (None, history.state.owner)
            and history.age(now) >= self.min_age
        )


def path_matches(path: str, pattern: str) -> bool:
    """Match a pattern without a slash against the name, one with a slash against the whole path, folder by folder.

    A star ends at the next slash; `**` as a folder stands for any number of folders.
    """
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return _folders_match(path.split("/"), pattern.split("/"))


def _folders_match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not names
    first, *rest = patterns
    if first == "**":
        return any(_folders_match(names[count:], rest) for count in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], first) and _folders_match(names[1:], rest)


class Outcome(StrEnum):
    """The outcome of a recovery. Only CLOSED, GONE and ALREADY_CLOSED leave nothing to do."""

    CLOSED = "closed"
    ALREADY_CLOSED = "already closed"
    GONE = "gone"
    CHANGED = "changed"
    DENIED = "denied"
    LEAKED = "leaked"
    GAVE_UP = "gave up"
    UNCONFIRMED = "unconfirmed"
    NOT_TRIED = "not tried"

    @property
    def settled(self) -> bool:
        return self in {Outcome.CLOSED, Outcome.ALREADY_CLOSED, Outcome.GONE}


OUTCOME_MEANS = {
    Outcome.CLOSED: "the file is closed and can be read to its end",
    Outcome.ALREADY_CLOSED: "it was already closed",
    Outcome.GONE: "the path no longer exists",
    Outcome.CHANGED: "it changed after its recovery was decided, and was left alone",
    Outcome.DENIED: "the principal may not write this file",
    Outcome.LEAKED: "the NameNode has no lease for it (HDFS-10763): a restart or failover of the NameNode repairs that",
    Outcome.GAVE_UP: "it was not closed before the deadline",
    Outcome.UNCONFIRMED: "recovery was requested but its end was not seen; requesting it again does no harm",
    Outcome.NOT_TRIED: "no recovery was requested",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A file to recover, as it was when its recovery was decided; if it differs when its turn comes, it is left alone.

    `holder` is the lease's holder, None if unknown; `reason` goes into the journal. `accepted`: probing its holder
    started its recovery, so a file found closed afterwards was closed by us.
    """

    path: str
    expected: Fingerprint
    holder: str | None
    reason: str
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class FileChange(Group):
    """A file before and after its recovery. Lengths are in bytes; None means unknown."""

    length_before: int | None
    visible_before: int | None
    """The length that a reader could see before."""
    length_after: int | None
    """The whole file's length after."""
    stamp_before: int | None
    stamp_after: int | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of one target."""

    path: str
    outcome: Outcome
    why: str
    reason: str
    holder: str | None
    change: FileChange
    started: datetime | None
    seconds: float
    asked: int
    """How often recovery was requested."""
    valid_length: int | None = None
    """The length that Flink's companion file says must be left."""

    @property
    def bytes_lost(self) -> int | None:
        """Return the number of bytes that a reader could see before and can't now; None if either length is unknown."""
        if self.change.visible_before is None or self.change.length_after is None:
            return None
        return max(0, self.change.visible_before - self.change.length_after)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, including the loss; times in ISO 8601 UTC."""
        return {**fields_of(self), "bytes_lost": self.bytes_lost}
