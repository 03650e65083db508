"""Values as plain data: what JSON can hold; and plain data that others wrote, where each value is read as its type.

A value of another type reads as none. So does a number or a time that no reader can count with: Python's JSON has NaN
and endless numbers, which a browser does not know, and a time without a zone, or near the year 9999, ends a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

Reader = Callable[[object], Any]

_LARGEST = 2**63
_LARGEST_WHOLE = 2**31
_LONGEST = timedelta(days=36_500)
# Any duration can be added to a time of these years.
_YEARS = range(1970, 9000)


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


def as_text(value: object) -> str:
    """Return the text; empty if it is none."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """Return the number, if a length in bytes can be that large."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST else None


def as_whole(value: object) -> int | None:
    """Return the whole number, if a database's column can hold it."""
    number = as_number(value)
    return value if isinstance(value, int) and number is not None and abs(number) < _LARGEST_WHOLE else None


def as_duration(value: object) -> timedelta | None:
    """Return the duration of so many seconds, up to a hundred years."""
    seconds = as_number(value)
    return timedelta(seconds=seconds) if seconds is not None and abs(seconds) <= _LONGEST.total_seconds() else None


def as_moment(value: object) -> datetime | None:
    """Return the time in ISO 8601, with a zone, in UTC."""
    try:
        moment = datetime.fromisoformat(as_text(value))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo and moment.year in _YEARS else None


def as_iso(value: object) -> str | None:
    """Return the time in ISO 8601 in one form, which any browser reads."""
    moment = as_moment(value)
    return moment.isoformat() if moment else None


def as_flag(value: object) -> bool:
    """Return whether it is true."""
    return value is True


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return the mapping; an empty one if it is none."""
    return value if isinstance(value, Mapping) else {}


def list_of(item: Reader) -> Callable[[object], list[Any]]:
    """Return what reads a list. Items that read as none, or as an empty text, are left out."""

    def read(value: object) -> list[Any]:
        items = value if isinstance(value, list) else ()
        return [one for each in items if (one := item(each)) not in (None, "")]

    return read


def mapping_of(**readers: Reader) -> Reader:
    """Return what reads a mapping with these fields alone, and anything else as None."""

    def read(value: object) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            return None
        return {name: reader(value.get(name)) for name, reader in readers.items()}

    return read
