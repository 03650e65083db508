"""A declaration as a claim keeps it, possibly written by another version of this package.

Strictness is for people's input. From a persisted spec, fields that this version does not know are dropped, and fields
that concern the supervisor alone may be missing or wrong: they then get their default. Every field that defines the
job itself must be there, or else the whole spec is unknown: a guess would start another job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from airflow_kstream.model.declared import read, read_persisted
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.stream import CREDENTIALS, POLICIES, Deploy, OnChange, StreamSpec

_JOB = ("name", "credentials", "application", "checkpoints", "arguments", "conf", "deploy")


@dataclass(frozen=True)
class UnknownSpec:
    """A stand-in for a spec that can't be read; `why` gives the reason, as the end of a sentence."""

    why: str


def read_spec(persisted: object) -> StreamSpec | UnknownSpec:
    """Read a spec that a claim or a copy of a declaration keeps."""
    if not isinstance(persisted, Mapping):
        return UnknownSpec("the claim holds no spec")
    if missing := [name for name in _JOB if name not in persisted]:
        return UnknownSpec(f"the claim's spec lacks {', '.join(missing)}")
    job = {name: persisted[name] for name in _JOB} | {
        "credentials": _credentials(persisted["credentials"]),
        "deploy": _known(Deploy, persisted["deploy"]),
    }
    try:
        return read_persisted(
            StreamSpec, job | read_policies(persisted) | {"on_change": _on_change(persisted.get("on_change"))}
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


def _on_change(value: object) -> str:
    return str(value) if value in set(OnChange) else OnChange.REPORT.value
