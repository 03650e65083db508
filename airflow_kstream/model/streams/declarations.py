"""What an Airflow keeps in a state_dir of its declarations: which streams it declares, and the policies that hold.

Two small files for each place, in the folder of the supervisor who reads the declarations. They outlive Airflow's
database, and who may edit Airflow's assets can't write them.

An edit of a stream's policies: what its declaration gives now, and what it gave before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from airflow_kstream.model.clusters.authors import file_about
from airflow_kstream.model.declared import written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.streams.persisted_spec import chosen, read_policies
from airflow_kstream.model.streams.stream import POLICIES, StreamSpec
from airflow_kstream.model.versioned import read, write

# A host whose copy of a declaration is older by more edits than these counts as one whose copy is newer.
_FORMER = 10

# Policies by their names, as the fields of a StreamSpec.
Policies = Mapping[str, Any]


@dataclass(frozen=True)
class PolicyEdit:
    """The policies that a declaration was found to give at `at`, as plain data without what is at its default.

    `former` are the marks of those that it gave before, the newest first. By them, and by no clock, a task
    tells whether its worker's copy of the declaration is older than this edit, or newer.
    """

    policies: Mapping[str, Any]
    at: datetime
    former: tuple[str, ...] = ()

    # Each look at each stream of a fleet asks.
    @cached_property
    def read(self) -> Policies:
        return read_policies(self.policies)

    @cached_property
    def mark(self) -> str:
        return mark_of(self.read)

    def replaces(self, ours: str | None, read: datetime | None = None) -> bool:
        """Return whether these hold in place of the policies with this mark that a task found declared at `read`, if
        that is known; None if it found none.

        They do where the task knew none, where the declaration gave its policies before, and where it was edited
        after the task read it.
        """
        if ours is None:
            return True
        return ours != self.mark and (ours in self.former or (read is not None and self.at > read))

    def to_json(self) -> dict[str, Any]:
        return {"policies": dict(self.policies), "at": self.at.isoformat(), "former": list(self.former)}

    @classmethod
    def from_json(cls, data: object) -> PolicyEdit | None:
        """Read what `to_json` wrote; None if it can't be read, because a watch goes on without it."""
        if not isinstance(data, Mapping) or not isinstance(data.get("policies"), Mapping):
            return None
        try:
            at = datetime.fromisoformat(data["at"])
            return cls(data["policies"], at, tuple(map(str, data["former"]))) if at.tzinfo else None
        except (ValueError, TypeError, KeyError):
            return None


def edited(before: PolicyEdit | None, policies: Policies, now: datetime) -> PolicyEdit:
    """Return the edit that follows `before`; without one, the declaration gave no policies before."""
    marks = (before.mark, *before.former) if before else (UNEDITED,)
    ours = mark_of(policies)
    former = [mark for mark in dict.fromkeys(marks) if mark != ours]
    return PolicyEdit(_choices(policies), now, tuple(former[:_FORMER]))


def policies_of(spec: StreamSpec) -> Policies:
    """Return the policies as they are read of a declaration: 4 and 4.0 are one number there."""
    return read_policies({name: written(getattr(spec, name)) for name in POLICIES})


def mark_of(policies: Policies) -> str:
    """Return text that is equal for equal policies, and for a later version that adds a field with a default."""
    return hashlib.sha256(json.dumps(_choices(policies), sort_keys=True).encode()).hexdigest()[:8]


def _choices(policies: Policies) -> dict[str, Any]:
    return {name: choice for name, policy in policies.items() if (choice := chosen(policy))}


# The mark of a declaration that gives no policies.
UNEDITED = mark_of(read_policies({}))


_VERSION = 1


class KeptKind(StrEnum):
    """The kinds of what is kept. The dot after them keeps their files apart from streams' folders, which have none."""

    STREAMS = "streams"
    POLICIES = "policies"


@dataclass(frozen=True)
class DeclarationFolder:
    """The declarations of one folder: an `installation` is an Airflow among those that share a state_dir, and the id of
    a `connection` names one of its folders."""

    installation: str
    connection: str

    def file_name(self, kind: KeptKind) -> str:
        """Return the name of its file of this kind."""
        return f"{kind}.{file_about(self.connection, self.installation, self.connection)}"


@dataclass(frozen=True)
class KeptPolicies:
    """The policies of a place's declarations, by their streams; a stream that never chose any has none.

    `declarations` is the digest of the files that they were read from, empty where another look at the same files
    could bring more.
    """

    streams: Mapping[str, PolicyEdit] = field(default_factory=dict)
    declarations: str = ""

    @property
    def without_notifiers(self) -> KeptPolicies:
        """Return them as another supervisor's word: whom to tell, and by which code, is nobody else's to say."""
        return KeptPolicies({name: _without_notifier(edit) for name, edit in self.streams.items()})


def written_streams(place: DeclarationFolder, names: Collection[str], by: str) -> str:
    """Return the text of a file with streams. `by` is for people: who is believed is HDFS's owner of the file."""
    return _written(place, by, streams=sorted(names))


def written_policies(place: DeclarationFolder, kept: KeptPolicies, by: str) -> str:
    """Return the text of a file with policies, as `written_streams`."""
    streams = {name: edit.to_json() for name, edit in sorted(kept.streams.items())}
    return _written(place, by, declarations=kept.declarations, streams=streams)


def read_streams(text: str, place: DeclarationFolder, modified: datetime) -> frozenset[str] | None:
    """Read a file with streams; None if it can't be understood, or is of another place."""
    names = _fields(text, place).get("streams")
    if not isinstance(names, list):
        return None
    return frozenset(name for name in names if isinstance(name, str) and is_stream_name(name))


def read_kept_policies(text: str, place: DeclarationFolder, modified: datetime) -> KeptPolicies | None:
    """Read a file with policies; None if it can't be understood, or is of another place.

    No edit is younger than its file, which was `modified` by HDFS's clock: one of the future would hold for ever.
    """
    fields = _fields(text, place)
    streams = fields.get("streams")
    if not isinstance(streams, Mapping):
        return None
    read = {name: PolicyEdit.from_json(edit) for name, edit in streams.items() if is_stream_name(name)}
    edits = {name: replace(edit, at=min(edit.at, modified)) for name, edit in read.items() if edit is not None}
    return KeptPolicies(edits, str(fields.get("declarations") or ""))


def _written(place: DeclarationFolder, by: str, **fields: Any) -> str:
    return write(_VERSION, {**asdict(place), "by": by, **fields}, indent=1)


def _fields(text: str, place: DeclarationFolder) -> Mapping[str, Any]:
    try:
        fields = read(text, _VERSION)
    except InvalidInput:
        return {}
    return fields if fields.items() >= asdict(place).items() else {}


def _without_notifier(edit: PolicyEdit) -> PolicyEdit:
    return replace(edit, policies={name: policy for name, policy in edit.policies.items() if name != "notify"})
