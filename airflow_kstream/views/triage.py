"""A diagnosis for people, as lines and as a page: the cause, its proof, the timeline, and what to do.

The page is one of HTML with its timeline drawn: no script, nothing from elsewhere, all log text escaped.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape

from airflow_kstream.model.known_faults import described
from airflow_kstream.model.logs.diagnosis import Diagnosis, DiagnosisOutcome, Mark, Step
from airflow_kstream.model.printable import printable_words

# What a step of a timeline is, and its colour on a light and on a dark page.
_COLOURS = {
    "cause": ("#b3261e", "#ff8a80"),
    # One that was active, too, and is not the one.
    "other": ("#6b5b95", "#b9a7e0"),
    "consequence": ("#8a6d00", "#e3b341"),
    "success": ("#1a7f37", "#56d364"),
    "fact": ("#57606a", "#9da7b1"),
}
_REST = "fact"
_LIGHT, _DARK = ("".join(f"--{kind}:{pair[which]};" for kind, pair in _COLOURS.items()) for which in (0, 1))
_STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}--soft:#f3f4f6;--ink:#1b1f24;--page:#fff}}"
    f"@media(prefers-color-scheme:dark){{:root{{{_DARK}--soft:#21262d;--ink:#e6edf3;--page:#0d1117}}}}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:var(--ink);"
    "background:var(--page);overflow-wrap:anywhere}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
    "pre,code{font:13px ui-monospace,monospace;background:var(--soft);white-space:pre-wrap}"
    "pre{padding:.7rem;border-left:4px solid var(--cause)}dt{font-weight:600}dd{margin:0 0 .6rem}"
    "table{border-collapse:collapse}td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}"
    "td:first-child{white-space:nowrap}"
    ".drawing{overflow-x:auto}svg{width:100%;min-width:50rem;height:auto}"
    "svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .cause text{font-weight:600}"
    # A ring instead of a dot, as quiet as its words.
    "svg .other circle{fill:var(--page);stroke:currentColor;stroke-width:2}"
    "svg .fact text,svg .other text{fill-opacity:.75}"
    ".list{display:none;list-style:none;padding:0}.list li{border-left:4px solid;padding:.1rem 0 .1rem .7rem;"
    "margin:.5rem 0}.list span{color:var(--ink)}.list .cause span{font-weight:600}"
    ".list .other{border-left-style:dotted}"
    # On a phone a drawing would have to be moved about, and a cell would have a word on each line.
    "@media(max-width:44rem){body{margin:1rem auto}.drawing{display:none}.list{display:block}tr,td{display:block}"
    "tr{margin:.6rem 0}td{padding:0}td:first-child{white-space:normal;font-weight:600}}"
    + "".join(f".{kind}{{color:var(--{kind})}}" for kind in _COLOURS)
)
# In the drawing's own units.
_PAGE_WIDTH, _LEFT, _ROW, _TOP, _DOT = 1000, 20, 34, 30, 5
_LONGEST_TITLE = 110
_QUOTED = re.compile("`([^`]+)`")

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


def diagnosis_page(diagnosis: Diagnosis, of: str) -> str:
    """Return the page. `of` names what was triaged."""
    return page(of, "\n".join(_body(diagnosis, of)))


def page(of: str, body: str) -> str:
    """Return a whole page with this title; `body` is HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{safe(of)}</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _body(diagnosis: Diagnosis, of: str) -> Iterator[str]:
    sure = f" <small>(confidence: {safe(diagnosis.confidence)})</small>" if diagnosis.confidence else ""
    yield f"<p>{safe(of)}</p><h1>{safe(diagnosis.title)}{sure}</h1>"
    if diagnosis.evidence:
        yield f"<p>First seen: {safe(place_of(diagnosis.evidence))}</p><pre>{safe(diagnosis.evidence.text)}</pre>"
    if known := diagnosis.signature:
        references = "; ".join(map(described, known.references))
        yield from _definitions(
            ("Means", known.means), ("Remedy", known.remedy), ("References", references), ("Versions", known.versions)
        )
    yield from _definitions(("Look", diagnosis.hint))
    if diagnosis.timeline:
        yield "<h2>Timeline</h2>"
        yield timeline([(step.mark.when, _words(step), _look(step, diagnosis)) for step in diagnosis.timeline])
    yield from _page_steps("Other causes that were active", diagnosis.others)
    yield from _page_steps("Over by then", diagnosis.earlier)
    if diagnosis.templates:
        rows = ((f"{each.count}x", "new" if each.new else "", short(each.text)) for each in diagnosis.templates)
        yield f"<h2>Lines that no signature knows</h2>{_table(rows)}"
    yield "".join(f"<p>{safe(line)}</p>" for line in scanned_lines(diagnosis))


def timeline(points: Sequence[tuple[datetime | None, str, str]]) -> str:
    """Draw moments with their words and kinds below each other, at places that show the time between them.

    A narrow page has them as a list instead.
    """
    rows = "".join(
        f'<li class="{_known(kind)}"><span>{safe(_clock(when) + words)}</span></li>' for when, words, kind in points
    )
    return f'{_drawing(points)}<ol class="list">{rows}</ol>'


def _drawing(points: Sequence[tuple[datetime | None, str, str]]) -> str:
    known = [when for when, _, _ in points if when]
    first, last = min(known, default=None), max(known, default=None)
    height = _TOP + _ROW * len(points)
    drawn = "".join(
        _point(number, _share(when, first, last), when, words, kind)
        for number, (when, words, kind) in enumerate(points)
    )
    ends = f'<line class="{_REST}" x1="{_LEFT}" y1="12" x2="{_PAGE_WIDTH - _LEFT}" y2="12" stroke="currentColor"/>'
    svg = f'<svg viewBox="0 0 {_PAGE_WIDTH} {height}" role="img" aria-label="timeline">{ends}{drawn}</svg>'
    return f'<div class="drawing">{svg}</div>'


def _point(number: int, share: float, when: datetime | None, words: str, kind: str) -> str:
    x, y = _LEFT + share * (_PAGE_WIDTH - 2 * _LEFT), _TOP + _ROW * number + 8
    left = share < 0.5
    text = f'x="{x + 12 if left else x - 12:.0f}" text-anchor="{"start" if left else "end"}"'
    return (
        f'<g class="{_known(kind)}">'
        f'<line x1="{x:.0f}" y1="12" x2="{x:.0f}" y2="{y}" stroke="currentColor" stroke-opacity=".25"/>'
        f'<circle cx="{x:.0f}" cy="{y}" r="{_DOT}" fill="currentColor"/>'
        f'<text {text} y="{y + 4}">{safe(_clock(when) + words[:_LONGEST_TITLE])}</text></g>'
    )


def _known(kind: str) -> str:
    return kind if kind in _COLOURS else _REST


def _clock(when: datetime | None) -> str:
    return f"{when:%m-%d %H:%M:%S} " if when else ""


def _look(step: Step, diagnosis: Diagnosis) -> str:
    """Return the step's kind; of several that may be causes, the one that the verdict names is the cause."""
    return "other" if step.kind == "cause" and step.signature != diagnosis.cause else step.kind


def _share(when: datetime | None, first: datetime | None, last: datetime | None) -> float:
    if not (when and first and last) or last == first:
        return 0.0
    return (when - first) / (last - first)


def _words(step: Step) -> str:
    many = f" ({step.count}x)" if step.count > 1 else ""
    return f"{step.mark.source.role}: {step.title}{many}"


def _page_steps(heading: str, steps: Iterable[Step]) -> Iterator[str]:
    rows = [(moment(step.mark), step.title, _page_where(step.mark)) for step in steps]
    if rows:
        yield f"<h2>{heading}</h2>{_table(rows)}"


def _page_where(mark: Mark) -> str:
    return f"{mark.source.file}:{mark.line}"


def _table(rows: Iterable[Sequence[str]]) -> str:
    cells = ("".join(f"<td>{safe(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _definitions(*pairs: tuple[str, str | None]) -> Iterator[str]:
    given = "".join(f"<dt>{label}</dt><dd>{_with_code(words)}</dd>" for label, words in pairs if words)
    if given:
        yield f"<dl>{given}</dl>"


def _with_code(words: str) -> str:
    """Escape a signature's words, and show what they quote in backticks as code."""
    return _QUOTED.sub(r"<code>\1</code>", safe(words))


def safe(text: object) -> str:
    """Escape foreign text: no markup, and control characters as escapes."""
    return escape(printable_words(str(text)), quote=True)
