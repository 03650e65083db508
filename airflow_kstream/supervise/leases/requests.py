"""Requests about open files as people write them (text, durations as `10m`, lists), turned into the search's values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from annotated_types import MaxLen
from pydantic import BeforeValidator, ConfigDict

from airflow_kstream.model.clusters.hdfs_path import checked_path, is_below
from airflow_kstream.model.declared import read, written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import Count, HdfsPath, Line, Patience, Wait, must
from airflow_kstream.model.leases.lease import LeaseRules, Search
from airflow_kstream.policy.leases.limits import IN_ALL, PER_DATANODE, RecoveryLimits
from airflow_kstream.supervise.leases.findings import FileFinding, Survey
from airflow_kstream.supervise.leases.judging import AllowedPath, ApprovalRules
from airflow_kstream.supervise.leases.recover import Backend, RecoverySettings

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


@dataclass(frozen=True, kw_only=True)
class OpenFileFilter:
    """A selection of open files. A field that a template leaves empty restricts nothing.

    :param path: an absolute folder or file.
    :param patterns: shell patterns; one must match the name, or the whole path if the pattern has a slash.
    :param owner, holder, host: only files of this owner, client name, client host.
    """

    path: HdfsPath
    patterns: Patterns = ()
    owner: MaybeLine = None
    holder: MaybeLine = None
    host: MaybeLine = None

    def search(self, min_age: timedelta = timedelta(0)) -> Search:
        return Search(self.path, self.patterns, self.holder, self.host, self.owner, min_age)


@dataclass(frozen=True, kw_only=True)
class RecoveryRequest(OpenFileFilter):
    """The files to recover and the way to do it, as an operator, a declaration or a command gives them.

    Beside the fields of `OpenFileFilter`:

    :param min_age: files that were opened later are left alone (`10m`).
    :param settle: how long a dead holder's file must be unchanged, between two scans at least (`10s`).
    :param leak_after: how long a living holder's file must be unchanged (`1h`).
    :param allowed: `PATTERN` or `PATTERN=APPLICATION`, an id or a stream's name; see `allowed_path`.
    :param approve: exact paths that a person decided to recover although their holder lives.
    :param approved_by: that person.
    :param limits: `default` starts with low concurrency and adapts to the cluster; `unlimited` has no limits.
    :param per_datanode: the most recoveries at once on one DataNode (512, or `in_all` if that is less).
    :param in_all: the most recoveries at once on all DataNodes together (1000).
    :param deadline: how long to wait for a file to close, from the first request on (`15m`).
    :param backend: `native`, or `hdfs-debug` for Hadoop's own `hdfs debug recoverLease`, a JVM for each file.
    :param dry_run: scan, and say what would be done. It touches no lease.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    min_age: Wait = LeaseRules.min_age
    settle: Wait = LeaseRules.settle
    leak_after: Wait = LeaseRules.leak_after
    allowed: AllowedPaths = ()
    approve: HdfsPaths = ()
    approved_by: MaybeLine = None
    limits: LimitsName = LimitsName.DEFAULT
    per_datanode: MaybeCount = None
    in_all: MaybeCount = None
    deadline: Patience = RecoveryLimits.deadline
    backend: Backend = Backend.NATIVE
    dry_run: bool = False

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

    def stuck(self, survey: Survey) -> tuple[FileFinding, ...]:
        """Return the files measured unchanged for `quiet`, or past recovery. No holder was probed."""
        return tuple(
            finding for finding in survey.findings if finding.stuck or finding.history.unchanged_for >= self.quiet
        )

    def met(self, survey: Survey) -> bool:
        """Tell whether the condition is met. An open file that the principal may not inspect still counts as open."""
        if self.until is Until.NONE:
            return not survey.findings and not survey.unreadable
        return len(self.stuck(survey)) >= self.at_least

    def report(self, survey: Survey, paths: int = 20) -> dict[str, Any]:
        """Return plain data of bounded size: the counts, and the first `paths` of the stuck files."""
        stuck = self.stuck(survey)
        return {
            "path": self.path,
            "at": survey.at.isoformat(),
            "open": len(survey.findings) + len(survey.unreadable),
            "stuck": len(stuck),
            "stuck_paths": [finding.path for finding in stuck[:paths]],
        }


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
