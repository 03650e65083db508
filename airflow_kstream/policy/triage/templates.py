"""The lines of trouble that no signature knows, by their templates: what differs between two of them is a #."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_kstream.model.log_scan.printed import PRINTED
from airflow_kstream.model.log_scan.sections import Hit, LinePattern, Section
from airflow_kstream.model.logs.diagnosis import Mark, Template
from airflow_kstream.model.logs.log_line import head_of, own_level, without_variables
from airflow_kstream.model.logs.signature import Catalogue, SignatureKind
from airflow_kstream.policy.triage.sightings import mark_of
from airflow_kstream.policy.triage.sources import WrittenSection

_FIRST, _LAST = 200, 60
TROUBLE = (
    LinePattern("~error", r"\bERROR\b|\bFATAL\b|\bSEVERE\b|\bCRITICAL\b", _FIRST, _LAST),
    LinePattern("~exception", r"Exception\b|Error: |Throwable\b", _FIRST, _LAST),
    LinePattern("~warning", r"\bWARN(?:ING)?\b", 50, 20),
    # What a program prints as it ends, without a logger; and errors of loggers that write JSON.
    LinePattern("~printed", r'^Exception in thread "', _FIRST, _LAST),
    LinePattern("~requirement", r"^(?:[\w.$]+: )?requirement failed: ", _FIRST, _LAST),
    LinePattern(
        "~traceback",
        r"^Traceback \(most recent call last\)",
        _FIRST,
        _LAST,
        closing=r"(?:\w+\.)*[A-Z]\w*(?:: |\r?$)|(?:\w+\.)+\w+: ",
    ),
    # Python prints these above tracebacks that nobody waits for.
    LinePattern("~aside", r"^Exception ignored in|^--- Logging error ---", _FIRST, _LAST),
    # Levels of loggers that write them in small letters, or in Chinese.
    LinePattern(
        "~small",
        r"\[ *error *\]|\[ *fatal *\]|\[ *critical *\]|\[ *Error *\]|严重: |"
        + "|".join(rf"^[\[\]0-9:T .,/Z+|\t-]+{word}[\]: \t]" for word in ("error", "fatal", "critical", "panic")),
        _FIRST,
        _LAST,
    ),
    LinePattern("~raised", r"^[\w$]+\.[\w.$]*Exception\b|^[\w$]+\.[\w.$]*Error\b", _FIRST, _LAST),
    # What programs that a job starts print to stderr.
    LinePattern(
        "~program",
        r"^kinit: |^klist: |^kvno: |^kdestroy: |^ktutil: |^bash: |^/bin/\w+: |: command not found"
        r"|^mkdir: |^put: |^ls: |^cat: |^rm: |^chmod: |^curl: |^ERROR: |^error: |^Error in |^fatal error: "
        r"|^panic: |panicked at |^Execution halted|^Segmentation fault|^Killed |^Aborted |core dumped|dumped core"
        r"|Main process exited, code=(?:killed|dumped)|: Failed with result '"
        r"|return code [1-9]|oom-kill|[Oo]ut of memory: Kill|^" + "|^".join(PRINTED),
        _FIRST,
        _LAST,
    ),
    # The level of a record that has fields. Which field it is, and whose, is looked up in the line.
    LinePattern(
        "~fields",
        "|".join(
            rf"\b{name}{sign}(?:err|ERR|Err|eror|EROR|crit|CRIT|Crit|fatal|FATAL|Fatal|panic|PANIC|dpanic|DPANIC)"
            for name in ("level", "lvl", "severity", "levelname", "loglevel")
            for sign in ('="?', '": ?"')
        )
        + r'|"level": ?[0-3][,}]|"level": ?[56]0[,}]',
        _FIRST,
        _LAST,
    ),
)
_ERROR, _EXCEPTION, _WARNING, _PRINTED, _REQUIREMENT, _TRACEBACK, _ASIDE, _SMALL, _RAISED, _PROGRAM, _FIELDS = TROUBLE
# By their severity, the worst first.
_SEVERITIES = {
    _ERROR: 0, _SMALL: 0, _PRINTED: 0, _PROGRAM: 0, _FIELDS: 0,
    _EXCEPTION: 1, _RAISED: 1, _REQUIREMENT: 1, _TRACEBACK: 1, _WARNING: 2,
}  # fmt: skip
# An exception says more than the line that was logged with it.
_TELLING = {_EXCEPTION, _RAISED, _PRINTED, _PROGRAM, _REQUIREMENT, _TRACEBACK}
# A warning is logged with the exception after which something is tried again, but never so with one of a thread.
_QUIET = {"INFO", "DEBUG", "TRACE"}
_WARNED = {"WARN", "WARNING"}
_PRINTED_AFTER = {
    _PRINTED: _QUIET | _WARNED, _PROGRAM: _QUIET | _WARNED, _REQUIREMENT: _QUIET, _TRACEBACK: _QUIET,
}  # fmt: skip
# A line with a level of its own begins a record, dated or not.
_WITH_LEVEL = (_ERROR, _SMALL, _FIELDS)
# What a shell echoes before it runs it, complains of without harm, and counts that are zero.
_HARMLESS = re.compile(
    r"^\++ |^[\w./-]+: (?:line \d+: )?warning: |no job control in this shell|cannot set terminal process group"
    r"|^\W{0,2}(?:ERROR|FATAL|CRITICAL)S?\W{1,4}0(?=\W*$|[ \t]*[,;|/)])"
)
# An exception after which nothing came is where it ended, whatever the level of its record. In lines, without heads.
_LINES_WENT_ON = 10
_RAISES = {_RAISED, _REQUIREMENT, _TRACEBACK}
_ENDING = re.compile(
    r"[Ss]hut(?:ting)? ?down|Invoking stop|[Ss]topp(?:ed|ing)|Deleting directory|SHUTDOWN_MSG|[Ee]xiting"
)
# A consequence may be logged with the unknown error behind it, and a fact is not a trouble.
_EXPLAINS = {SignatureKind.CAUSE, SignatureKind.NOISE, SignatureKind.SUCCESS}
# Frames tell where, not what.
_FRAME = re.compile(r"^[ \t]*(?:at |File \"|\.\.\. ?\d+ )|Traceback \(most")
_BEGINNING = re.compile(
    r"^(?:\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)[ ]*\]?:? *)?"
    r"[\[(]?[\d/:., TZ+-]{8,}(?:\(\d+\))?[\])]? *(?:--> *)?"
)
# In the last part of a log a line is new if the log had none like it before; a log of few lines has only that part.
_NEW_PART, _FEW_LINES = 0.8, 200

# By the number of the head above them: the numbers of lines, with their levels.
Printed = Mapping[int, Mapping[int, str]]


@dataclass
class _Group:
    severity: int
    first: Mark
    count: int
    new: bool


def templates_of(
    written: Iterable[WrittenSection], catalogue: Catalogue, most: int, since: datetime | None = None
) -> tuple[Template, ...]:
    """Return the commonest templates: those that are new first, then by severity, the latest first.

    Those that were not seen `since` that moment are left out.
    """
    groups: dict[str, _Group] = {}
    for each in written:
        for text, severity, mark, new in _unknown(each, catalogue):
            if since and mark.when and mark.when < since:
                continue
            group = groups.setdefault(text, _Group(severity, mark, 0, new))
            group.count, group.new = group.count + 1, group.new and new
    ranked = sorted(groups.items(), key=lambda item: (not item[1].new, item[1].severity, -item[1].first.line))
    return tuple(Template(text, group.count, group.first, group.new) for text, group in ranked[:most])


def _unknown(written: WrittenSection, catalogue: Catalogue) -> Iterator[tuple[str, int, Mark, bool]]:
    """Yield one line of each record of trouble that no signature knows: of several the one that says most."""
    section = written.section
    asides = {hit.number for hit in _kept(section, _ASIDE)}
    printed = _printed(section, asides)
    known_records, known_lines = _known(written, catalogue, printed)
    begins_new = section.at_line + (section.lines * _NEW_PART if section.lines > _FEW_LINES else 0)
    best: dict[int, tuple[int, Hit]] = {}
    raised: set[int] = set()
    for pattern, severity in _SEVERITIES.items():
        for hit in _kept(section, pattern):
            record = _record(hit, printed)
            if record in known_records or hit.number in known_lines or _is_frame(hit, pattern):
                continue
            if _HARMLESS.search(hit.line):
                continue
            if pattern in _RAISES and hit.number != hit.head_number and hit.number - 1 not in asides:
                raised.add(record)
            worst = min(severity, best[record][0]) if record in best else severity
            says_more = record not in best or (pattern in _TELLING and hit.number > best[record][1].number)
            best[record] = (worst, hit if says_more else best[record][1])
    for record, (severity, hit) in best.items():
        # Masked first: with a # in it a password is no longer recognised as one.
        mark = mark_of(hit, written)
        level = printed.get(hit.head_number, {}).get(record, "")
        if level or (record in raised and not _went_on(written, mark)):
            mark = replace(mark, level=level or "ERROR")
        if text := without_variables(_BEGINNING.sub("", mark.text)):
            yield text, severity, mark, hit.number >= begins_new


def _went_on(written: WrittenSection, mark: Mark) -> bool:
    """Return whether its writer worked on after the line. The words of an end do not count."""
    section = written.section
    if not section.tail:
        return section.at_line + section.lines > mark.line + _LINES_WENT_ON
    return section.tail_at > mark.line and not _ENDING.search(section.tail)


def _is_frame(hit: Hit, pattern: LinePattern) -> bool:
    """Return whether the line tells nothing; a traceback that is cut off tells at least that there was one."""
    return pattern is not _TRACEBACK and _FRAME.search(hit.line) is not None


def _kept(section: Section, pattern: LinePattern) -> tuple[Hit, ...]:
    found = section.found.get(pattern.name)
    return found.kept if found else ()


def _printed(section: Section, asides: Container[int]) -> Printed:
    """Return the lines that begin records without a head, and their levels, by the head that stands above them."""
    printed: dict[int, dict[int, str]] = {}
    for pattern, levels in _PRINTED_AFTER.items():
        for hit in _kept(section, pattern):
            head = head_of(hit.head)
            if head and head.level in levels and hit.number - 1 not in asides:
                printed.setdefault(hit.head_number, {})[hit.number] = "ERROR"
    for hit in (hit for pattern in _WITH_LEVEL for hit in _kept(section, pattern)):
        if hit.number != hit.head_number and (level := own_level(hit.line)):
            printed.setdefault(hit.head_number, {})[hit.number] = level
    return printed


def _record(hit: Hit, printed: Printed) -> int:
    """Return the line with which the hit's record begins."""
    above = (line for line in printed.get(hit.head_number, ()) if line <= hit.number)
    return max(above, default=hit.head_number or hit.number)


def _known(written: WrittenSection, catalogue: Catalogue, printed: Printed) -> tuple[set[int], set[int]]:
    """Return the records that a signature explains, and the lines that any signature matches."""
    records, lines = set(), set()
    for name, found in written.section.found.items():
        if signature := catalogue.signatures.get(name):
            lines |= {hit.number for hit in found.kept}
            if signature.kind in _EXPLAINS:
                records |= {_record(hit, printed) for hit in found.kept}
    return records, lines
