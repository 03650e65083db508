"""Values as plain data: what JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any


class Group:
    """A group of a value's fields. In plain data they stand among the fields of the value, not below a name."""

    __slots__ = ()


def plain(value: Any) -> Any:
    """Return times as ISO 8601, durations as seconds, enums as their values, dataclasses and mappings as dicts.

    Sets become sorted lists. Values that JSON already knows stay as they are.
    """
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    return fields_of(value) if is_dataclass(value) and not isinstance(value, type) else value


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as plain data, those of its groups among them."""
    data: dict[str, Any] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        data |= fields_of(item) if isinstance(item, Group) else {field.name: plain(item)}
    return data
