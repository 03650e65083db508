"""The lines with which records of logs begin: their moment and their level, in the forms that log4j 1 and 2, logback,
Flink, Kafka, Hadoop's daemons, Airflow, Spark's and Airflow's JSON, and the kernel write.

A moment without a zone is that of its writer. Without a date or a year it can be compared within its own file only.

The text of an error without what differs between two runs of one failure.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

# The longer forms first.
_VARIES = re.compile(
    r"\b(?:application|appattempt|container|attempt|job|task|stage)_[\w.]+"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b0x[0-9a-fA-F]+\b|@[0-9a-f]{5,}\b|\b[0-9a-f]{12,}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\d+"
)
# In characters.
_LONGEST = 200


_LEVELS = r"TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|SEVERE|CRITICAL"
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, start=1)}
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d)\b)?"
_WHEN = "|".join(
    (
        rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]{_CLOCK}{_ZONE}",
        rf"\d\d/\d\d/\d\d {_CLOCK}{_ZONE}",
        rf"[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}",
        r"\d\d:\d\d:\d\d[.,]\d{3}\b",
    )
)
# The grammar of the beginning, for the scanner, which looks for it in bytes.
HEAD = rf"(?:\{{\"(?:ts|timestamp)\":\"|[\[(]?(?:(?:{_LEVELS}) *\]?:? *)?[\[(]?)(?:{_WHEN})"
_HEAD = re.compile(HEAD)
_JSON_LEVEL = re.compile(r'"level": ?"(\w+)"')
_LEVEL = re.compile(rf"(?<![\w.])(?:{_LEVELS})\b(?!\.)")
_STAMP = re.compile(
    rf"(?P<year>\d{{4}}|\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ](?P<clock>{_CLOCK})(?P<zone>{_ZONE})"
)
_UNDATED_YEAR = re.compile(rf"(?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) (?P<clock>{_CLOCK})")
_FARTHEST = timedelta(hours=24)
# In characters, from the moment on.
_LEVEL_WITHIN = 160


@dataclass(frozen=True)
class LogHead:
    """The beginning of a record: its moment, None if it has no date, and its level, empty if it names none."""

    when: datetime | None
    level: str


def head_of(line: str, zone: tzinfo = UTC, year: int | None = None) -> LogHead | None:
    """Read a line; None if no record begins with it. `zone` is its writer's, `year` is for moments that lack one."""
    found = _HEAD.match(line)
    if found is None:
        return None
    level = _JSON_LEVEL if line.startswith("{") else _LEVEL
    named = level.search(line, 0, found.end() + _LEVEL_WITHIN)
    return LogHead(_when(found[0], zone, year), named[named.re.groups].upper() if named else "")


def _when(text: str, zone: tzinfo, year: int | None) -> datetime | None:
    if found := _STAMP.search(text):
        own = int(found["year"])
        parts = (own + 2000 if own < 100 else own, int(found["month"]), int(found["day"]))
        return _moment(parts, found["clock"], _zone(found["zone"].strip(), zone))
    if (found := _UNDATED_YEAR.search(text)) and year and found["month"] in _MONTHS:
        return _moment((year, _MONTHS[found["month"]], int(found["day"])), found["clock"], zone)
    return None


def _moment(date: tuple[int, int, int], clock: str, zone: tzinfo) -> datetime | None:
    whole, _, fraction = clock.replace(",", ".").partition(".")
    hour, minute, second = map(int, whole.split(":"))
    try:
        return datetime(*date, hour, minute, min(second, 59), int(f"{fraction:0<6}"[:6]), tzinfo=zone)
    except ValueError:
        return None


def _zone(written: str, otherwise: tzinfo) -> tzinfo:
    if not written:
        return otherwise
    if written in {"Z", "UTC"}:
        return UTC
    return zone_of_offset(written.replace(":", "")) or otherwise


def zone_of_offset(written: str) -> tzinfo | None:
    """Return the zone of an offset such as +0800; None if there is none that far away."""
    offset = timedelta(hours=int(written[1:3]), minutes=int(written[3:5]))
    if offset >= _FARTHEST:
        return None
    return timezone(-offset if written[0] == "-" else offset)


def without_variables(error: str) -> str:
    """Return the first line of an error, with a # for each id, address, time and number."""
    first = (error.strip().splitlines() or [""])[0]
    return textwrap.shorten(_VARIES.sub("#", first), _LONGEST, placeholder=" ...")
