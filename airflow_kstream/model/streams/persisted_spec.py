"""A declaration as a claim keeps it, possibly written by another version of this package.

Strictness is for people's input. From a persisted spec, fields that this version does not know are dropped, and fields
that concern the supervisor alone may be missing or wrong: they then get their default. Every field that defines the
job itself must be there, or else the whole spec is unknown: a guess would start another job.

A comparison of the declared spec with the running job: would it submit another job?
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from airflow_kstream.model.declared import read, read_persisted, written
from airflow_kstream.model.errors import InvalidInput
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
_VERSION = 2
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
    return f"{_VERSION}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def change(declared: str, running: str) -> Change:
    """Compare the fingerprint of the declared spec with that of the running job."""
    if not running.startswith(f"{_VERSION}:"):
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
