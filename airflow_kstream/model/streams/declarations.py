"""Declarations as a state_dir keeps them: in claims, and as the streams and the policies of each place.

A claim keeps the spec that was submitted, possibly written by another version of this package. Strictness is for
people's input: from a persisted spec, fields that this version does not know are dropped, and fields that concern the
supervisor alone may be missing or wrong and then get their default. Every field that defines the job itself must be
there, or else the whole spec is unknown: a guess would start another job. `differences` compares such a spec with what
is declared now: would it submit another job?

A place is a folder of declarations. Two small files for each tell which streams it declares, and which policies hold;
they lie in the folder of the supervisor who reads it, outlive Airflow's database, and can't be written by those who may
edit Airflow's assets. A `PolicyEdit` is what a declaration gives now, and what it gave before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Set
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

from airflow_kstream.model import versioned
from airflow_kstream.model.clusters.authors import file_about
from airflow_kstream.model.declared import read, read_persisted, written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.names import is_app_name
from airflow_kstream.model.streams.deploy import Deploy, FlinkDeploy
from airflow_kstream.model.streams.stream import (
    CREDENTIALS,
    POLICIES,
    EngineName,
    FlinkStreamSpec,
    OnChange,
    StreamSpec,
    spec_of,
)
from airflow_kstream.model.versioned import UnknownSpec

# Increment it whenever the same spec gets another digest.
_DIGEST_VERSION = 2
_NOT_OF_THE_JOB = {*POLICIES, "on_change", "airflow", "savepoints", "outputs"}

_JOB = ("name", "credentials", "application", "checkpoints", "arguments", "conf", "deploy")
_OF_FLINK = ("savepoints", "outputs")


def read_spec(persisted: object) -> StreamSpec | UnknownSpec:
    """Read a spec that a claim or a copy of a declaration keeps."""
    if not isinstance(persisted, Mapping):
        return UnknownSpec("the claim holds no spec")
    if missing := [name for name in _JOB if name not in persisted]:
        return UnknownSpec(f"the claim's spec lacks {', '.join(missing)}")
    engine = persisted.get("engine", EngineName.SPARK)
    if engine not in set(EngineName):
        return UnknownSpec(f"the claim's spec is for an engine that this program does not have: {engine!r}")
    kind = spec_of(engine)
    job = {name: persisted[name] for name in _JOB} | {
        "credentials": _credentials(persisted["credentials"]),
        "deploy": _known(FlinkDeploy if kind is FlinkStreamSpec else Deploy, persisted["deploy"]),
        "engine": engine,
    }
    try:
        return read_persisted(
            kind,
            job
            | ({name: persisted[name] for name in _OF_FLINK if name in persisted} if kind is FlinkStreamSpec else {})
            | {"app_name": _app_name(persisted.get("app_name"))}
            | read_policies(persisted)
            | {"on_change": _on_change(persisted.get("on_change"))},
        )
    except InvalidInput as error:
        return UnknownSpec(f"the claim's spec can't be read: {error.message}")


def read_policies(persisted: Mapping[str, Any]) -> dict[str, Any]:
    """Read the groups of durations and ratios by their names; what can't be read gets its default."""
    return {name: _policy(kind, persisted.get(name)) for name, kind in POLICIES.items()}


def _credentials(block: object) -> object:
    kind = CREDENTIALS.get(str(block.get("mode"))) if isinstance(block, Mapping) else None
    return _known(kind, block) if kind else block


def _known(kind: type[Any], block: object) -> object:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in block.items() if name in names} if isinstance(block, Mapping) else block


def _policy(kind: type[Any], block: object) -> Any:
    """Read all fields, or if that fails each that can be read; the others get their default."""
    known = block if isinstance(block, Mapping) else {}
    values = {field.name: known[field.name] for field in fields(kind) if field.name in known}
    whole = _build(kind, values)
    if whole is not None:
        return whole
    good = {name: value for name, value in values.items() if _build(kind, {name: value}) is not None}
    return _build(kind, good) or kind()


def _build(kind: type[Any], values: Mapping[str, Any]) -> Any | None:
    try:
        return read(kind, values)
    except InvalidInput:
        return None


def _app_name(value: object) -> str | None:
    """Return the name that YARN shows. What no declaration could give is none, in a command line above all."""
    return value if isinstance(value, str) and is_app_name(value) else None


def _on_change(value: object) -> str:
    return str(value) if value in set(OnChange) else OnChange.REPORT.value


class Change(StrEnum):
    """The result of comparing fingerprints. UNKNOWN: they were made by different versions."""

    NONE = "none"
    CHANGED = "changed"
    UNKNOWN = "unknown"


def fingerprint(spec: StreamSpec) -> str:
    """Return `<version>:<digest>` of the fields that define the job, without those at their default.

    So neither a field that a later version adds changes it, nor do policies, `on_change` and `airflow`.
    """
    text = json.dumps(_submitted(spec), sort_keys=True)
    return f"{_DIGEST_VERSION}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def change(declared: str, running: str) -> Change:
    """Compare the fingerprint of the declared spec with that of the running job."""
    if not running.startswith(f"{_DIGEST_VERSION}:"):
        return Change.UNKNOWN
    return Change.NONE if running == declared else Change.CHANGED


def differences(declared: StreamSpec, running: StreamSpec | UnknownSpec) -> tuple[str, ...]:
    """Return the fields (dotted) in which the declared spec would submit another job than the running one.

    There are none if the running spec is unknown.
    """
    if isinstance(running, UnknownSpec):
        return ()
    declared_leaves, running_leaves = _leaves(_submitted(declared)), _leaves(_submitted(running))
    keys = sorted(declared_leaves.keys() | running_leaves.keys())
    return tuple(key for key in keys if declared_leaves.get(key) != running_leaves.get(key))


def _submitted(spec: StreamSpec) -> dict[str, Any]:
    # Spark's is left out: the digests of its streams are older than the second engine.
    engine = {} if spec.engine is EngineName.SPARK else {"engine": spec.engine.value}
    return engine | chosen(spec, without=_NOT_OF_THE_JOB)


def chosen(value: Any, without: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the fields that are not at their default, as plain data; leave those of the names `without` out."""
    set_by_hand = {
        name: item
        for name, default in _defaults(value.__class__).items()
        # Two kinds of credentials may set the same fields, so the kind itself always counts.
        if name not in without and ((item := getattr(value, name)) != default or name == "mode")
    }
    return {name: chosen(item) if is_dataclass(item) else written(item) for name, item in set_by_hand.items()}


# A supervisor compares fingerprints several times at each look.
@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {field.name: _default(field) for field in fields(kind)}


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    # The fields without a default; of these only `checkpoints` may be empty, which stays out of the digest.
    return () if field.default is MISSING else field.default


def _leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping) or set(value) == {"secret"}:
        return {prefix: value}
    leaves: dict[str, Any] = {}
    for key, item in value.items():
        leaves |= _leaves(item, f"{prefix}.{key}" if prefix else str(key))
    return leaves


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
    return versioned.write(_VERSION, {**asdict(place), "by": by, **fields}, indent=1)


def _fields(text: str, place: DeclarationFolder) -> Mapping[str, Any]:
    try:
        fields = versioned.read(text, _VERSION)
    except InvalidInput:
        return {}
    return fields if fields.items() >= asdict(place).items() else {}


def _without_notifier(edit: PolicyEdit) -> PolicyEdit:
    return replace(edit, policies={name: policy for name, policy in edit.policies.items() if name != "notify"})
