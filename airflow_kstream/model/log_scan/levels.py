"""The levels of loggers that write fields: JSON in one line, and logfmt (key=value)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

NAMES_OF_LEVEL = ("level", "log.level", "levelname", "severity", "log_level", "lvl", "loglevel")
# In other letters and words than log4j's; a longer one than the key begins with it, too.
_WORDS = {
    "ERR": "ERROR", "EROR": "ERROR", "CRIT": "CRITICAL", "FATAL": "FATAL", "PANIC": "FATAL", "DPANIC": "FATAL",
    "EMERG": "FATAL", "ALERT": "FATAL", "SEVERE": "SEVERE", "WARN": "WARN", "INFO": "INFO", "NOTICE": "NOTICE",
    "DEBUG": "DEBUG", "TRACE": "TRACE",
}  # fmt: skip
# bunyan's and pino's numbers, and those of syslog, which GELF has.
_NUMBERS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
_OF_SYSLOG = ("FATAL", "FATAL", "CRITICAL", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG")
_PAIR = re.compile(r'(?<![^ \t])([\w.@-]+)=(?:"((?:[^"\\]|\\.)*)"|([^ \t"]*))')
# One of these tells a record from a list of settings.
_SAYS = {"msg", "message", "err", "error", "event", "ts", "time", "timestamp", "caller", "logger"}
# In characters.
_LONGEST = 2000


def level_in(fields: Mapping[str, Any]) -> str:
    """Return the level of a record in capitals, in log4j's word where it is known; empty if it has none."""
    found: Any = next((fields[key] for key in NAMES_OF_LEVEL if fields.get(key) not in (None, "")), "")
    inner = fields.get("log")
    if found == "" and isinstance(inner, Mapping):
        found = inner.get("level", "")
    if isinstance(found, int):
        return _of_number(found, "short_message" in fields)
    word = str(found).strip().upper()
    return next((level for begin, level in _WORDS.items() if word.startswith(begin)), word)


def level_of_fields(line: str) -> str:
    """Return the level of a line that is a record in JSON or logfmt; empty if it is none or has none."""
    if line.startswith("{"):
        try:
            fields = json.loads(line)
        except ValueError:
            return ""
        return level_in(fields) if isinstance(fields, dict) else ""
    first = _PAIR.match(line)
    if first is None:
        return ""
    pairs: dict[str, str] = {}
    for found in _PAIR.finditer(line, 0, _LONGEST):
        pairs.setdefault(found[1], found[2] or found[3] or "")
    return level_in(pairs) if _SAYS & pairs.keys() else ""


def _of_number(number: int, is_gelf: bool) -> str:
    if is_gelf:
        return _OF_SYSLOG[number] if 0 <= number < len(_OF_SYSLOG) else ""
    return _NUMBERS.get(number, "")
