"""A diagnosis as lines for people: the cause, its proof, the timeline, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from airflow_kstream.model.known_faults import described
from airflow_kstream.model.logs.diagnosis import Diagnosis, DiagnosisOutcome, Mark, Step

# In characters, of a line of a log.
_SHOWN = 240
_WIDTH = 118


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the report. Log text in it may hold anything: print it with control characters as escapes."""
    sure = f" (confidence: {diagnosis.confidence})" if diagnosis.confidence else ""
    yield f"{'CAUSE: ' if diagnosis.outcome is DiagnosisOutcome.CAUSE else ''}{diagnosis.title}{sure}"
    if diagnosis.evidence:
        yield f"  first seen: {place_of(diagnosis.evidence)}"
        yield f"  | {short(diagnosis.evidence.text)}"
    if known := diagnosis.signature:
        yield from _paragraph("means", known.means)
        yield from _paragraph("remedy", known.remedy)
        yield from _paragraph("references", "; ".join(map(described, known.references)))
        yield from _paragraph("versions", known.versions or "")
    yield from _paragraph("look", diagnosis.hint)
    yield from _steps("timeline", diagnosis.timeline)
    yield from _steps("other causes that were active", diagnosis.others)
    yield from _steps("over by then", diagnosis.earlier)
    if diagnosis.templates:
        yield "lines that no signature knows:"
        for template in diagnosis.templates:
            yield f"  {template.count}x{' (new)' if template.new else ''} {short(template.text)}"
            yield f"     first: {place_of(template.first)}"
    yield from scanned_lines(diagnosis)


def scanned_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what was read, and what could not be read."""
    scanned = diagnosis.scanned
    yield f"read {scanned.logs} logs with {scanned.lines} lines, {scanned.size / 1e6:.1f} MB"
    yield from (f"not read: {why}" for why in scanned.unread)


def moment(mark: Mark) -> str:
    """Return a mark's moment in its writer's zone, as its log shows it."""
    return f"{mark.when:%Y-%m-%d %H:%M:%S}" if mark.when else "no time"


def place_of(mark: Mark) -> str:
    """Return file and line of a mark, its writer and its moment."""
    role = f", {mark.source.role}" if mark.source.role != "unknown" else ""
    return f"{mark.source.file}:{mark.line}{role}, {moment(mark)}"


def _steps(heading: str, steps: tuple[Step, ...]) -> Iterator[str]:
    if not steps:
        return
    yield f"{heading}:"
    for step in steps:
        many = f" {step.count}x" if step.count > 1 else ""
        logs = f" in {step.logs} logs" if step.logs > 1 else ""
        until = f" until {step.until:%H:%M:%S}" if step.until else ""
        yield f"  {moment(step.mark)} {step.mark.source.role}: {step.title}{many}{logs}{until} [{_where(step.mark)}]"


def _where(mark: Mark) -> str:
    return f"{mark.source}:{mark.line}"


def _paragraph(label: str, text: str) -> Iterator[str]:
    if text:
        yield from textwrap.wrap(f"{label}: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    ")


def short(text: str) -> str:
    """Return the beginning of a line of a log, with single blanks."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."
