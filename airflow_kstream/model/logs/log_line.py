"""The lines with which records of logs begin: their moment and their level, in the forms that log4j 1 and 2, logback,
java.util.logging, glog, Flink, Kafka, Hadoop's daemons, Tomcat, Airflow, Spark's JSON and the kernel write.

A moment without a zone is that of its writer. Without a date or a year it can be compared within its own file only.
`without_variables` leaves out of an error's text what differs between two runs of one failure.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from airflow_kstream.model.log_scan.forms import LEVEL_FIRST, LEVELS, level_of_fields

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

_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CHINESE = ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_MONTHS = {name: number for names in (_NAMES, _CHINESE) for number, name in enumerate(names, start=1)}
_CHINESE_LEVELS = {"严重": "SEVERE", "警告": "WARNING", "信息": "INFO"}
_AFTERNOON = {"PM", "pm", "下午"}
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d)\b)?"
_MONTH = "|".join(_NAMES)
_HALF = r"(?:[AaPp][Mm]|上午|下午)"
_WEEKDAY = r"[A-Z][a-z]{2}"
# As programs write them: with the year first; day, month and year; java.util.logging's English and Chinese; `date`; and
# with less than that. The numbers are milliseconds since 1970.
_FORMS = (
    rf"(?P<year>\d{{4}})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)(?:[T _]|, ?)(?P<clock>{_CLOCK})(?P<zone>{_ZONE})",
    rf"(?P<year>\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ](?P<clock>{_CLOCK})(?P<zone>{_ZONE})",
    rf"(?P<day>\d{{1,2}})[-/. ](?P<month>{_MONTH}|\d\d)[-/. ](?P<year>\d{{4}})[: ,T] ?"
    rf"(?P<clock>{_CLOCK})(?P<zone>{_ZONE})",
    rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}}),? "
    rf"(?P<clock>\d{{1,2}}:\d\d:\d\d)[ \u202f]?(?P<half>{_HALF})",
    rf"(?P<month>\d{{1,2}}|十一|十二|[一-十])月 (?P<day>\d{{1,2}}), (?P<year>\d{{4}}),? "
    rf"(?P<clock>\d{{1,2}}:\d\d:\d\d) ?(?P<half>{_HALF})",
    rf"(?P<year>\d{{4}})年(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})日? ?"
    rf"(?P<half>{_HALF}) ?(?P<clock>\d{{1,2}}:\d\d:\d\d)",
    rf"{_WEEKDAY} (?P<month>{_MONTH}) (?P<day>[ \d]\d) (?P<clock>{_CLOCK}) (?:[A-Z]{{2,5}} )?(?P<year>\d{{4}})",
    rf"(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d)[ T-](?P<clock>{_CLOCK})(?P<zone>{_ZONE})",
    rf"(?P<month>{_MONTH}) (?P<day>[ \d]\d) (?P<clock>{_CLOCK})",
    rf"(?P<month>\d\d)-?(?P<day>\d\d) (?P<clock>{_CLOCK})",
    r"(?P<milliseconds>1\d{12})\b",
    r"\d\d:\d\d:\d\d[.,]\d{3}\b",
    rf"\d\d:\d\d:\d\d(?= +[\[|]? *(?:{LEVELS})\b)",
)
_STAMPS = tuple(map(re.compile, _FORMS))
# In bytes a letter of Chinese is several.
_WHEN = re.sub(r"\?P<\w+>", "?:", "|".join(_FORMS)).replace("[一-十]", "(?:" + "|".join(_CHINESE[:10]) + ")")
_WHEN = _WHEN.replace(r"[ \u202f]?", "(?: |\u202f)?")
# The grammar of the beginning, for the scanner, which looks for it in bytes.
HEAD = (
    r"(?:\{\"(?:ts|timestamp)\":\"|(?:time|ts|t)=\"?"
    r"|<(?:log4j:event|Event) [^>\n]{0,200}?[mM]illis=\"|<log4j:event [^>\n]{0,200}?stamp=\""
    rf"|[\[(]?(?:(?:{LEVELS}) *\]?:? *)?[\[(]?)(?:{_WHEN})"
)
_HEAD = re.compile(HEAD)
_LEVEL_FIRST = re.compile(LEVEL_FIRST)
_JSON_LEVEL = re.compile(r'"(?:level|severity|levelname|log\.level)": ?"(\w+)"')
# A word in small letters is a level in brackets, or behind the level's name.
_LEVEL = re.compile(
    rf"(?<![\w.])(?:(?:{LEVELS})\b(?!\.)"
    rf"|(?i:\[ *(?:{LEVELS}) *\]|\b(?:level|lvl|severity)=\"?(?:{LEVELS})\b)|严重|警告|信息)"
)
_LEVEL_WORD = re.compile(rf"(?i:{LEVELS})|严重|警告|信息")
# Right behind the moment a word in small letters is one, too.
_LEVEL_BEHIND = re.compile(rf"[\]Z]?[ \t:|-]{{1,5}}((?i:{LEVELS}))(?=[\]: \t])")
_FARTHEST = timedelta(hours=24)
# Of moments that are one: what is earlier or later has no neighbour that Python could compute.
_YEARS = range(1970, 2200)
# In characters, from the moment on.
_LEVEL_WITHIN = 160


@dataclass(frozen=True)
class LogHead:
    """The beginning of a record: its moment, None if it has no date, and its level, empty if it names none."""

    when: datetime | None
    level: str


def head_of(line: str, zone: tzinfo = UTC, year: int | None = None) -> LogHead | None:
    """Read a line; None if no record begins with it. `zone` is its writer's, `year` is for moments that lack one.

    A record of a log without moments begins with its level.
    """
    found = _HEAD.match(line)
    if found is None:
        named = level_of(line) if _LEVEL_FIRST.match(line) else ""
        return LogHead(None, named) if named else None
    if not line.startswith("{"):
        small = _LEVEL_BEHIND.match(line, found.end())
        return LogHead(_when(found[0], zone, year), small[1].upper() if small else level_of(line, found.end()))
    named_in = _JSON_LEVEL.search(line)
    return LogHead(_when(found[0], zone, year), named_in[1].upper() if named_in else "")


def level_of(line: str, at: int = 0) -> str:
    """Return the first level that the beginning of a line names, in capitals; empty if it names none."""
    found = _LEVEL.search(line, 0, at + _LEVEL_WITHIN)
    word = _LEVEL_WORD.search(found[0]) if found else None
    return _CHINESE_LEVELS.get(word[0], word[0].upper()) if word else ""


def own_level(line: str) -> str:
    """Return the level of a line that begins a record without a moment; empty if it begins none."""
    return level_of(line) if _LEVEL_FIRST.match(line) else level_of_fields(line)


def _when(text: str, zone: tzinfo, year: int | None) -> datetime | None:
    found = next((found for stamp in _STAMPS if (found := stamp.search(text))), None)
    parts = found.groupdict() if found else {}
    if milliseconds := parts.get("milliseconds"):
        return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    own = int(parts.get("year") or year or 0)
    if "day" not in parts or not own:
        return None
    month, day = _month(parts["month"]), int(parts["day"])
    if month > 12 >= day:
        # As Americans write it.
        month, day = day, month
    date = (own + 2000 if own < 100 else own, month, day)
    when = _moment(date, parts["clock"], _zone((parts.get("zone") or "").strip(), zone))
    return _of_half(when, parts.get("half"))


def _month(written: str) -> int:
    return int(written) if written.isdecimal() else _MONTHS[written]


def _of_half(when: datetime | None, half: str | None) -> datetime | None:
    """Return a moment of a clock of twelve hours."""
    if when is None or half is None:
        return when
    return when.replace(hour=when.hour % 12 + (12 if half in _AFTERNOON else 0))


def _moment(date: tuple[int, int, int], clock: str, zone: tzinfo) -> datetime | None:
    whole, _, fraction = clock.replace(",", ".").partition(".")
    hour, minute, second = map(int, whole.split(":"))
    if date[0] not in _YEARS:
        return None
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
