"""The lines of trouble that no signature knows, by their templates: what differs between two of them is a #."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_kstream.model.diagnosis import Mark, Template
from airflow_kstream.model.error_text import without_variables
from airflow_kstream.model.log_scan.sections import Hit, LinePattern
from airflow_kstream.model.signature import Catalogue, SignatureKind
from airflow_kstream.policy.triage.sightings import mark_of
from airflow_kstream.policy.triage.sources import WrittenSection

_FIRST, _LAST = 200, 60
# By their severity, the worst first.
TROUBLE = (
    LinePattern("~error", r"\bERROR\b|\bFATAL\b|\bSEVERE\b|\bCRITICAL\b", _FIRST, _LAST),
    LinePattern("~exception", r"Exception\b|Error: |Traceback \(most|Throwable\b", _FIRST, _LAST),
    LinePattern("~warning", r"\bWARN(?:ING)?\b", 50, 20),
)
# A consequence may be logged with the unknown error behind it, and a fact is no trouble.
_EXPLAINS = {SignatureKind.CAUSE, SignatureKind.NOISE, SignatureKind.SUCCESS}
# Frames tell where, not what.
_FRAME = re.compile(r"^[ \t]*(?:at |File \"|\.\.\. ?\d+ )|Traceback \(most")
_BEGINNING = re.compile(
    r"^(?:\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)[ ]*\]?:? *)?"
    r"[\[(]?[\d/:., TZ+-]{8,}(?:\(\d+\))?[\])]? *(?:--> *)?"
)
# In the last part of a log a line is new if the log had none like it before; a log of few lines has only that part.
_NEW_PART, _FEW_LINES = 0.8, 200


@dataclass
class _Group:
    severity: int
    first: Mark
    count: int
    new: bool


def templates_of(written: Iterable[WrittenSection], catalogue: Catalogue, most: int) -> tuple[Template, ...]:
    """Return the commonest templates: those that are new first, then by severity, the latest first."""
    groups: dict[str, _Group] = {}
    for each in written:
        for text, severity, mark, new in _unknown(each, catalogue):
            group = groups.setdefault(text, _Group(severity, mark, 0, new))
            group.count, group.new = group.count + 1, group.new and new
    ranked = sorted(groups.items(), key=lambda item: (not item[1].new, item[1].severity, -item[1].first.line))
    return tuple(Template(text, group.count, group.first, group.new) for text, group in ranked[:most])


def _unknown(written: WrittenSection, catalogue: Catalogue) -> Iterator[tuple[str, int, Mark, bool]]:
    """Yield one line of each record of trouble that no signature knows: of several the one that says most."""
    known_records, known_lines = _known(written, catalogue)
    section = written.section
    begins_new = section.at_line + (section.lines * _NEW_PART if section.lines > _FEW_LINES else 0)
    best: dict[int, tuple[int, Hit]] = {}
    for severity, pattern in enumerate(TROUBLE):
        found = section.found.get(pattern.name)
        for hit in found.kept if found else ():
            record = hit.head_number or hit.number
            if record in known_records or hit.number in known_lines or _FRAME.search(hit.line):
                continue
            # An exception below says more than the line that was logged with it.
            worst = min(severity, best[record][0]) if record in best else severity
            says_more = record not in best or (pattern is TROUBLE[1] and hit.number > best[record][1].number)
            best[record] = (worst, hit if says_more else best[record][1])
    for severity, hit in best.values():
        # Masked first: with a # in it a password is no longer recognised as one.
        mark = mark_of(hit, written)
        if text := without_variables(_BEGINNING.sub("", mark.text)):
            yield text, severity, mark, hit.number >= begins_new


def _known(written: WrittenSection, catalogue: Catalogue) -> tuple[set[int], set[int]]:
    """Return the records that a signature explains, and the lines that any signature matches."""
    records, lines = set(), set()
    for name, found in written.section.found.items():
        if signature := catalogue.signatures.get(name):
            lines |= {hit.number for hit in found.kept}
            if signature.kind in _EXPLAINS:
                records |= {hit.head_number or hit.number for hit in found.kept}
    return records, lines
