"""A comparison of the declared spec with the running job: would it submit another job?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from airflow_kstream.model.declared import written
from airflow_kstream.model.streams.persisted_spec import UnknownSpec
from airflow_kstream.model.streams.stream import POLICIES, StreamSpec

# Increment it whenever the same spec gets another digest.
_VERSION = 2
_NOT_OF_THE_JOB = {*POLICIES, "on_change", "airflow"}


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
    return chosen(spec, without=_NOT_OF_THE_JOB)


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
