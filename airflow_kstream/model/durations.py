"""Durations as people write them: `90s`, `15m`, `6h`, `7d`, `1h30m`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

from airflow_kstream.model.errors import InvalidInput

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")


def parse_duration(text: str) -> timedelta:
    """Raise InvalidInput for anything but a run of `<number><ms|s|m|h|d|w>`."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise InvalidInput(f"{text!r} is not a duration; write it like 90s, 15m, 6h, 7d or 1h30m")
    try:
        return sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    except OverflowError:
        raise InvalidInput(f"{text!r} is longer than anything lasts") from None


def format_duration(duration: timedelta) -> str:
    """The two largest units: `6d 23h`, `2m 15s`, `-14s`."""
    seconds = round(duration.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return sign + (" ".join(parts[:2]) or "0s")


def _from_text(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except InvalidInput as error:
        raise ValueError(error.message) from error


Duration = Annotated[timedelta, BeforeValidator(_from_text)]
