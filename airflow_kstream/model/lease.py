"""What is thought of an open file's lease, and what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput


class HolderLiveness(StrEnum):
    """Whether the process that holds the lease still renews it. UNKNOWN also where nobody asked."""

    DEAD = "dead"
    RENEWING = "renewing"
    UNKNOWN = "unknown"


class FileCondition(StrEnum):
    """How an open file stands.

    HOLDER_DEAD and LEAKED are the stuck ones: nobody will close them, or nobody who makes progress. YOUNG and
    UNWATCHED are those of which nothing is said yet; an IDLE one is quiet, and nothing is known against its holder.
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
    """From when on an open file is thought to be stuck.

    `min_age`: younger files are left alone. `settle`: for how long, and `looks`: at how many looks, a dead holder's
    file must be unchanged. `leak_after`: the same for a holder that lives. `blackout`: after a failover every lease
    counts as just renewed (HdfsConstants.LEASE_SOFTLIMIT_PERIOD, 60 s, and a margin). `silent_after`: when a
    DataNode that does not report counts as lost (NameNode's own default is 10 min 30 s).
    """

    min_age: timedelta = timedelta(minutes=10)
    settle: timedelta = timedelta(seconds=10)
    looks: int = 2
    leak_after: timedelta = timedelta(hours=1)
    blackout: timedelta = timedelta(seconds=70)
    silent_after: timedelta = timedelta(seconds=630)

    def __post_init__(self) -> None:
        for name in ("min_age", "settle", "leak_after", "blackout", "silent_after"):
            if getattr(self, name) < timedelta(0):
                raise InvalidInput(f"{name} is {getattr(self, name)}; allowed is a duration of 0 s or more")
        if self.looks < 2:
            raise InvalidInput(
                f"looks is {self.looks}; one look can't tell a growing file from a stuck one: allowed is >= 2"
            )


@dataclass(frozen=True)
class JudgementContext:
    """What is known beside the looks. `active_since`: since when this NameNode serves, where known.

    `safe_mode` is whether it doesn't serve just now. `refusal` is why nobody learned whether the holder lives: what it
    said when it was asked for the file, or why it was not. `recovering` is whether it said that it recovers it.
    """

    now: datetime
    holder: HolderLiveness = HolderLiveness.UNKNOWN
    active_since: datetime | None = None
    safe_mode: bool = False
    refusal: str = ""
    recovering: bool = False


@dataclass(frozen=True)
class Judgement:
    """How a file stands, why in words, and what a person can do. `brief` is why without this file's own figures."""

    condition: FileCondition
    why: str
    advice: str = ""
    brief: str = ""

    @property
    def sort(self) -> str:
        """What to count it under, among many files."""
        return self.brief or self.condition.value


@dataclass(frozen=True)
class Approval:
    """What allows the recovery of a file whose holder lives.

    `allowed`: its path is on the allow-list. `application_finished`: the ResourceManager says so of the application
    that wrote it; None where nothing is known. `approved_by`: the person who decided for this very path.
    """

    allowed: bool = False
    application_finished: bool | None = None
    approved_by: str | None = None


@dataclass(frozen=True)
class Decision:
    """Whether a file may be recovered now, and the rule that says so."""

    granted: bool
    why: str


@dataclass(frozen=True)
class Attribution:
    """Who writes a file, as far as it can be told. `finished` is None where the application is not known."""

    stream: str | None = None
    application: str | None = None
    host: str | None = None
    finished: bool | None = None
    how: str = ""


@dataclass(frozen=True)
class Search:
    """Which open files are meant: below `path`, and matching all that is given.

    `patterns` are shell patterns, of which one must match the file's name, or the whole path where it has a slash.
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
