"""Lines that are compared: by the numbers, dates and applications in two of them; and the values that a remedy needs.

A signature that consists of others names the relation in which their lines have to be; without it they only have to be
there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.logs.diagnosis import LogSource, Mark
from airflow_kstream.model.logs.log_line import head_of
from airflow_kstream.model.logs.signature import LineRelation, Signature

# Hadoop's default of dfs.namenode.delegation.token.renew-interval: a younger token has not ended by itself.
_RENEW_INTERVAL = timedelta(days=1)
_NUMBER = re.compile(r"(?:_TOKEN token |sequenceNumber=|\btoken )(\d+)")
_DATES = re.compile(r"\b(issueDate|maxDate)=(\d{12,13})\b")
_EXPECTED = re.compile(r"expected renewal time:? (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4})")
_CURRENT = re.compile(r"current time:? (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4})")
_APPLICATION = re.compile(r"application_(\d+_\d+)")
_OWN = re.compile(r"(?:application|appattempt|container(?:_e\d+)?)_(\d+_\d+)")
# Of the same moment, written by two programs.
_ALIKE = timedelta(seconds=2)

Related = Callable[[Mark], bool]


def _after(others: Sequence[Mark]) -> Related:
    earliest = min((other.when for other in others if other.when), default=None)
    lines, undated = _first_lines(others), _first_lines(other for other in others if not other.when)

    def is_after(mark: Mark) -> bool:
        if mark.when is None:
            return lines.get(mark.source, mark.line + 1) <= mark.line
        is_later = earliest is not None and earliest <= mark.when
        return is_later or undated.get(mark.source, mark.line + 1) <= mark.line

    return is_after


def _first_lines(marks: Iterable[Mark]) -> Mapping[LogSource, int]:
    first: dict[LogSource, int] = {}
    for mark in marks:
        first[mark.source] = min(mark.line, first.get(mark.source, mark.line))
    return first


def _young_token(others: Sequence[Mark]) -> Related:
    made: dict[str, datetime] = {}
    for other in others:
        if other.when and (number := _number(other)):
            made[number] = max(other.when, made.get(number, other.when))

    def is_young(mark: Mark) -> bool:
        """Return whether the token that is refused was made less than a renew interval before."""
        issued = _date("issueDate", mark.text) or made.get(_number(mark)) if mark.when else None
        return bool(mark.when and issued and timedelta() <= mark.when - issued < _RENEW_INTERVAL)

    return is_young


def _aged_token(others: Sequence[Mark]) -> Related:
    return _is_aged


def _is_aged(mark: Mark) -> bool:
    """Return whether the token was past its max-lifetime: renewed up to that, or refused after it."""
    limit = _date("maxDate", mark.text)
    now = _written(_CURRENT, mark.text) or mark.when
    until = _written(_EXPECTED, mark.text)
    return bool(limit and ((now and now >= limit) or (until and abs(until - limit) <= _ALIKE)))


def _of_another_application(others: Sequence[Mark]) -> Related:
    told: dict[LogSource, set[str]] = {}
    for other in others:
        told.setdefault(other.source, set()).update(_OWN.findall(other.text))

    def is_of_another(mark: Mark) -> bool:
        """Return whether the application in the line is none of those whose log it is."""
        named = set(_APPLICATION.findall(mark.text))
        own = {found for text in (mark.source.file, mark.source.container) for found in _OWN.findall(text)}
        own |= told.get(mark.source, set())
        return bool(named and own) and not named & own

    return is_of_another


# Each looks at the others once, because there may be thousands of them and of the marks.
_RELATIONS: Mapping[LineRelation, Callable[[Sequence[Mark]], Related]] = {
    LineRelation.AFTER: _after,
    LineRelation.YOUNG_TOKEN: _young_token,
    LineRelation.AGED_TOKEN: _aged_token,
    LineRelation.OF_ANOTHER_APPLICATION: _of_another_application,
}


def related(relation: LineRelation | None, marks: Iterable[Mark], others: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return the marks that are in this relation to the others; all of them if there is none to be in."""
    if relation is None:
        return tuple(marks)
    return tuple(filter(_RELATIONS[relation](others), marks))


def _number(mark: Mark) -> str:
    found = _NUMBER.search(mark.text)
    return found[1] if found else ""


def _date(name: str, text: str) -> datetime | None:
    found = next((digits for key, digits in _DATES.findall(text) if key == name), None)
    return datetime.fromtimestamp(int(found) / 1000, UTC) if found else None


def _written(pattern: re.Pattern[str], text: str) -> datetime | None:
    found = pattern.search(text)
    head = head_of(found[1]) if found else None
    return head.when if head else None


# By the word of a remedy that stands for it. They are shown in commands: nothing that a shell reads is in them.
_SAFE = r"[\w./:@=+-]"
_VALUES = {
    "PATH": re.compile(
        rf"(?:_FILE|[Ll]ease on|[Cc]reate file|inode=\"?|file[=:]?|src=|File|recover|quota of|at|getting block of) ?\"?"
        rf"((?:hdfs:/)?/{_SAFE}{{2,300}})"
    ),
    "KEYTAB": re.compile(rf"[Kk]eytab(?: file)?[=: ]+({_SAFE}*\.keytab(?![\w.-])|/{_SAFE}{{2,200}}\b)"),
    "PRINCIPAL": re.compile(r"\b([\w.-]+(?:/[\w.-]+)?@[A-Z][A-Z0-9.-]+)\b"),
    "APPLICATION": re.compile(r"\b(application_\d+_\d+)\b"),
    "CACHE": re.compile(rf"filename: ({_SAFE}{{2,300}})\)"),
    "USER": re.compile(r"(?:\buser[=:] ?|\bUser:? |user \[)([\w.-]{1,64})\b"),
}


def with_values(signature: Signature, mark: Mark) -> Signature:
    """Return the signature with the values of the line in the commands of its remedy."""
    remedy = signature.remedy
    for word, pattern in _VALUES.items():
        if found := pattern.search(mark.text):
            remedy = re.sub(rf"(?<![\w.]){word}(?![\w.])", found[1].rstrip(".:"), remedy)
    return replace(signature, remedy=remedy)
