"""Requests about open files as people write them (text, durations as `10m`, lists), turned into the search's values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from annotated_types import MaxLen, MinLen
from pydantic import BeforeValidator, ConfigDict

from airflow_kstream.model.airflow_options import AirflowOptions, require_notifiers
from airflow_kstream.model.clusters.hdfs_path import checked_path, is_below
from airflow_kstream.model.declared import read, written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import Count, HdfsPath, Line, Patience, Schedule, Wait, must
from airflow_kstream.model.forms import Said
from airflow_kstream.model.leases.lease import LeaseRules, Search
from airflow_kstream.model.leases.limits import IN_ALL, PER_DATANODE, RecoveryLimits

_ALLOWED = re.compile(r"(?P<pattern>[^=].*?)(?:(?<!\[)=(?P<application>[^/=]+))?", re.DOTALL)
# A single text is a list of one. A template or a form's field that comes out empty counts as absent.
_ONE_OR_MORE = BeforeValidator(lambda value: (value,) if value and isinstance(value, str) else value or ())
_AT_MOST = MaxLen(1000)
_OrNone = BeforeValidator(lambda value: None if value == "" else value)
_Pattern = Annotated[str, must(lambda text: text.strip() != "" and "\0" not in text, "a shell pattern")]
Patterns = Annotated[tuple[_Pattern, ...], _ONE_OR_MORE, _AT_MOST]
HdfsPaths = Annotated[tuple[HdfsPath, ...], _ONE_OR_MORE, _AT_MOST]
MaybeLine = Annotated[Line | None, _OrNone]
# Pydantic would take true for 1; as text it is refused.
_NotBoolean = BeforeValidator(lambda value: str(value).lower() if isinstance(value, bool) else value)
MaybeCount = Annotated[Count | None, _OrNone, _NotBoolean]


@dataclass(frozen=True)
class AllowedPath:
    """A shell pattern of paths that may be recovered from a living holder once its application is finished.

    `application` is the id or the stream whose end counts; None means the one that the file is attributed to.
    """

    pattern: str
    application: str | None = None


@dataclass(frozen=True)
class ApprovalRules:
    """Approvals for files with a living holder: patterns agreed beforehand, and a person's decision for exact paths."""

    allowed: tuple[AllowedPath, ...] = ()
    approved: frozenset[str] = frozenset()
    approved_by: str | None = None

    def __post_init__(self) -> None:
        if self.approved and not self.approved_by:
            raise InvalidInput("paths are approved and nobody is named; say who approves them (approved_by)")


class Backend(StrEnum):
    """The way to the NameNode: batches over one connection, or Hadoop's own tool, which starts a JVM for each file."""

    NATIVE = "native"
    DEBUG = "hdfs-debug"


@dataclass(frozen=True)
class RecoverySettings:
    """The files to recover and the way to do it. With `dry_run` no request that has an effect is sent."""

    search: Search
    rules: LeaseRules = field(default_factory=LeaseRules)
    approvals: ApprovalRules = field(default_factory=ApprovalRules)
    limits: RecoveryLimits = field(default_factory=RecoveryLimits)
    backend: Backend = Backend.NATIVE
    dry_run: bool = False


def allowed_path(text: str) -> AllowedPath:
    """Parse `PATTERN` or `PATTERN=APPLICATION`, where the application is an id or a stream's name.

    Only an `=` behind the last slash divides: the partitions of /warehouse/day=2026-01-01/* are folders. For a
    pattern whose last part has an `=` of its own, write `[=]`.
    """
    match = _ALLOWED.fullmatch(text)
    if match is None or not _allows(text):
        raise InvalidInput(f"{text!r} allows nothing; write PATTERN or PATTERN=APPLICATION")
    return AllowedPath(match["pattern"], match["application"])


def _allows(text: str) -> bool:
    return bool(_ALLOWED.fullmatch(text)) and not text.endswith("=") and "\0" not in text


AllowedPaths = Annotated[
    tuple[Annotated[str, must(_allows, "PATTERN or PATTERN=APPLICATION")], ...], _ONE_OR_MORE, _AT_MOST
]


class LimitsName(StrEnum):
    """The concurrency of a recovery: starting low and adapting to the cluster, or unlimited."""

    DEFAULT = "default"
    UNLIMITED = "unlimited"


_PATTERNS = Said(
    "Patterns",
    "Shell patterns such as *.in-progress; one must match the file's name, or its whole path where the pattern has a "
    "slash. Without any, all open files.",
)


@dataclass(frozen=True, kw_only=True)
class OpenFileFilter:
    """A selection of open files. A field that a template leaves empty restricts nothing.

    :param path: an absolute folder or file.
    :param owner, holder, host: only files of this owner, client name, client host.
    """

    path: HdfsPath
    patterns: Annotated[Patterns, _PATTERNS] = ()
    owner: MaybeLine = None
    holder: MaybeLine = None
    host: MaybeLine = None

    def search(self, min_age: timedelta = timedelta(0)) -> Search:
        return Search(self.path, self.patterns, self.holder, self.host, self.owner, min_age)


@dataclass(frozen=True, kw_only=True)
class RecoveryOptions:
    """The way to recover files, as an operator, a declaration, a form or a command gives it."""

    min_age: Annotated[
        Wait, Said("Opened at least … ago", "Younger files are left alone, even if their holder is dead.")
    ] = LeaseRules.min_age
    leak_after: Annotated[
        Wait,
        Said(
            "Unchanged for at least …, where the holder lives",
            "A file whose holder lives counts as leaked when it was measured unchanged for this long.",
        ),
    ] = LeaseRules.leak_after
    allowed: Annotated[
        AllowedPaths,
        Said(
            "Allowed once their application is finished",
            "PATTERN or PATTERN=APPLICATION: files that may be recovered although their holder lives. The application "
            "is an id or a stream's name; without one, the application to which the file is attributed must be known "
            "to be finished. In the last part of a path, write [=] for a literal =.",
        ),
    ] = ()
    limits: Annotated[
        LimitsName,
        Said(
            "Limits",
            "default starts with low concurrency and adapts to the cluster; unlimited has no limit. Safe mode, dead "
            "DataNodes and failures stop both.",
        ),
    ] = LimitsName.DEFAULT
    per_datanode: Annotated[
        MaybeCount,
        Said(
            "At once on one DataNode",
            "The most recoveries at once on one DataNode; left out, 512, or the most in all if that is less.",
        ),
    ] = None
    in_all: Annotated[
        MaybeCount,
        Said("At once in all", "The most recoveries at once on all DataNodes together; left out, 1000."),
    ] = None
    deadline: Annotated[
        Patience,
        Said(
            "Deadline of a file",
            "How long to wait for a file to close, from the first request on, before it is given up.",
        ),
    ] = RecoveryLimits.deadline
    backend: Annotated[
        Backend,
        Said(
            "Backend",
            "native asks for many files over one connection; hdfs-debug runs hdfs debug recoverLease, a JVM of some "
            "seconds for each file, on a host that has a Hadoop client.",
        ),
    ] = Backend.NATIVE
    dry_run: Annotated[bool, Said("Dry run", "Scan, say what would be done, and touch no lease.")] = False


@dataclass(frozen=True, kw_only=True)
class RecoveryRequest(RecoveryOptions, OpenFileFilter):
    """The files to recover and the way to do it.

    Beside the fields of `OpenFileFilter` and `RecoveryOptions`:

    :param settle: how long a dead holder's file must be unchanged, between two scans at least (`10s`).
    :param approve: exact paths that a person decided to recover although their holder lives.
    :param approved_by: that person.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    settle: Wait = LeaseRules.settle
    approve: Annotated[
        HdfsPaths,
        Said(
            "Approved by you",
            "Exact paths of leaked files to close although their holder lives. What their writers did not flush is "
            "lost. The journal names who approved them.",
        ),
    ] = ()
    approved_by: MaybeLine = None

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> RecoveryRequest:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(RecoveryRequest, fields)

    def require_within(self, folders: Sequence[str]) -> None:
        """Raises InvalidInput: when the path, or one that is approved, lies in none of these folders; it names it."""
        inside = [checked_path(folder) for folder in folders]
        for path in map(checked_path, (self.path, *self.approve)):
            if not any(is_below(folder, path) for folder in inside):
                raise InvalidInput(f"{path} lies in none of the declared paths, which are {', '.join(inside)}")

    def settings(self) -> RecoverySettings:
        return RecoverySettings(
            search=self.search(),
            rules=LeaseRules(min_age=self.min_age, settle=self.settle, leak_after=self.leak_after),
            approvals=ApprovalRules(
                tuple(allowed_path(text) for text in self.allowed), frozenset(self.approve), self.approved_by or None
            ),
            limits=self._recovery_limits(),
            backend=self.backend,
            dry_run=self.dry_run,
        )

    def _recovery_limits(self) -> RecoveryLimits:
        numbers = {"per_datanode": self.per_datanode, "in_all": self.in_all}
        if self.limits is LimitsName.UNLIMITED:
            names = " and ".join(name for name, limit in numbers.items() if limit is not None)
            if names:
                raise InvalidInput(f"limits is unlimited, so {names} can't be given")
            return RecoveryLimits.unlimited(self.deadline)
        in_all = IN_ALL if self.in_all is None else self.in_all
        per_datanode = min(PER_DATANODE, in_all) if self.per_datanode is None else self.per_datanode
        return RecoveryLimits(per_datanode, in_all, self.deadline)


@dataclass(frozen=True, kw_only=True)
class LeaseDeclaration(RecoveryOptions):
    """The content of the file that declares which folders of a cluster are kept free of stuck files.

    Beside the fields of `RecoveryOptions`: `every` is the schedule of the cluster's DAG, `airflow` what its tasks get.
    Raises InvalidInput: when a field is wrong.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    # Airflow checks each whenever it reads the file, for which it has 30 s.
    paths: Annotated[
        tuple[HdfsPath, ...],
        MinLen(1),
        _AT_MOST,
        Said("Folders or files", "Absolute HDFS paths: those of the declaration, or what lies in them."),
    ]
    patterns: Annotated[Patterns, _PATTERNS] = ()
    every: Schedule = timedelta(minutes=15)
    airflow: AirflowOptions = field(default_factory=AirflowOptions)

    def __post_init__(self) -> None:
        _ = self.request(self.paths[0]).settings()
        require_notifiers(self.airflow)

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> LeaseDeclaration:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(LeaseDeclaration, fields)

    def request(self, path: str) -> RecoveryRequest:
        """Return what is done about one of the paths, if no person says otherwise."""
        options = {option.name: getattr(self, option.name) for option in dataclass_fields(RecoveryOptions)}
        return RecoveryRequest(path=path, patterns=self.patterns, **options)


class Until(StrEnum):
    """The condition to wait for: a stuck file, or no open file at all."""

    STUCK = "stuck"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class OpenFileCondition(OpenFileFilter):
    """The condition to wait for below a path.

    Beside the fields of `OpenFileFilter`:

    :param min_age: files that were opened later don't count (`0s`).
    :param quiet: for how long a file must be unchanged to be stuck (`10m`). With `0s` every open file is.
    :param until: `stuck`, or `none` for no open file at all.
    :param at_least: how many stuck files to wait for (`1`).
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    min_age: Wait = timedelta(0)
    quiet: Wait = timedelta(minutes=10)
    until: Until = Until.STUCK
    at_least: Count = 1

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> OpenFileCondition:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(OpenFileCondition, fields)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, which `from_mapping` takes."""
        return dict(written(self))


def fields_with(ours: Mapping[str, object], value: object, name: str) -> dict[str, object]:
    """Return what an operator was given in one value, together with its own fields.

    Raises InvalidInput: when the value is not a mapping, or repeats a field that the operator sets itself.
    """
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput(f"{name} is {value!r}; allowed is a mapping of fields")
    fields = dict(value or {})
    twice = ", ".join(sorted(ours.keys() & fields.keys()))
    if twice:
        raise InvalidInput(f"{name} has {twice}, which is a parameter beside it")
    return fields | dict(ours)
