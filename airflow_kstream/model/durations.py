"""Durations as people write them: `90s`, `15m`, `6h`, `7d`, `1h30m`."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from airflow_kstream.model.errors import InvalidInput

_SHOWN = 60
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d|w)")


# The claims of all streams hold the same few ones, again and again.
@lru_cache(maxsize=1024)
def parse_duration(text: str) -> timedelta:
    """Read a run of `<number><ms|s|m|h|d|w>`, to the microsecond. Raises InvalidInput: when it is anything else."""
    parts, shown = _PART.findall(text), repr(text if len(text) < _SHOWN else text[:_SHOWN] + "…")
    if not parts or _PART.sub("", text).strip():
        raise InvalidInput(f"{shown} is not a duration; write it like 90s, 15m, 6h, 7d or 1h30m")
    try:
        return sum((_part(number, unit) for number, unit in parts), timedelta())
    except OverflowError:
        raise InvalidInput(f"{shown} is longer than anything lasts") from None


def written_duration(duration: timedelta) -> str:
    """Return it in seconds, as `parse_duration` reads it back exactly."""
    seconds, rest = divmod(duration // _MICROSECOND, 10**6)
    return f"{seconds}.{rest:06d}".rstrip("0").rstrip(".") + "s"


def format_duration(duration: timedelta) -> str:
    """Return its two largest units: `6d 23h`, `2m 15s`, `-14s`."""
    seconds = round(duration.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return sign + (" ".join(parts[:2]) or "0s")


def _part(number: str, unit: str) -> timedelta:
    return timedelta(microseconds=int(Decimal(number) * (_UNITS[unit] // _MICROSECOND)))


def _from_text(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false are not durations; write it like 90s, 15m, 6h, 7d or 1h30m")
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except InvalidInput as error:
        raise ValueError(error.message) from error


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta():
        raise ValueError(f"{format_duration(value)} is negative; allowed is 0s or longer")
    return value


_SCHEMA = {"type": "string", "format": "duration", "pattern": r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$"}
Duration = Annotated[timedelta, BeforeValidator(_from_text), AfterValidator(_not_negative), WithJsonSchema(_SCHEMA)]
