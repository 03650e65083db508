"""The life of a token as a table, and drawn on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.table import Table

from airflow_kstream.model.kerberos.token_history import TokenEvent, TokenEventKind, TokenHistory
from airflow_kstream.views.tables import NOT_KNOWN, add, table
from airflow_kstream.views.triage_page import page, safe, timeline

_COLOURS = {TokenEventKind.FAILED: "cause", TokenEventKind.REMOVED: "cause", TokenEventKind.RENEWED: "success"}


def history_lines(history: TokenHistory) -> Iterator[str]:
    """Yield what is known of the token before its events."""
    yield f"{history.kind} {history.number} of {history.owner}, for {history.service or NOT_KNOWN}"
    if history.applications:
        yield f"  of {', '.join(history.applications)}"
    ends = f"good until {_clock(history.good_until)}, max date {_clock(history.max_date)}"
    yield f"  issued {_clock(history.issued)}, {ends}"
    if history.usual_share is not None:
        yield f"  renewed {len(history.renewals)} times, usually at {history.usual_share:.0%} of the time that was left"


def events_table(history: TokenHistory) -> Table:
    rows = table("when", "event", "good until", "at", "line")
    for event in history.events:
        share = "" if event.share is None else f"{event.share:.0%}"
        add(rows, _clock(event.when), event.kind.value, _clock(event.until, ""), share, f"{event.file}:{event.line}")
    return rows


def histories_page(histories: Iterable[TokenHistory], of: str) -> str:
    """Return a page with the timeline of each token drawn."""
    body = "".join(_drawn(history) for history in histories)
    return page(of, f"<h1>Delegation tokens in {safe(of)}</h1>{body}")


def _drawn(history: TokenHistory) -> str:
    title, *more = history_lines(history)
    words = "".join(f"<p>{safe(line)}</p>" for line in more)
    points = [(event.when, _words(event), _COLOURS.get(event.kind, "fact")) for event in history.events]
    if history.max_date:
        points.append((history.max_date, "max date", "consequence"))
    ordered = sorted(points, key=lambda point: (point[0] is None, point[0].timestamp() if point[0] else 0.0))
    return f"<h2>{safe(title)}</h2>{words}{timeline(ordered)}"


def _words(event: TokenEvent) -> str:
    until = f", good until {_clock(event.until)}" if event.until else ""
    return f"{event.kind.value}{until}"


def _clock(when: datetime | None, otherwise: str = NOT_KNOWN) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S %z}" if when else otherwise
