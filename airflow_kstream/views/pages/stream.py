"""One stream's page: its row, its past generations, its events, its batches and its submission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.streams.event import WORDS, EventKind, Ledger
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.views.pages.fleet import StoredStream, UnseenStream, row_of, row_of_unseen
from airflow_kstream.views.pages.kept import shown

_STALLED = {Pulse.STALLED, Pulse.START_STALLED}


def stream_page(of: StoredStream | UnseenStream, now: datetime, late: timedelta) -> dict[str, Any]:
    """Return all that is stored of one stream, if anything is; `late` is the age after which a look is stale."""
    if isinstance(of, StoredStream):
        return {"row": row_of(of, now, late), **_stored(of)}
    nothing = StoredStream(of.cluster, of.stream, StreamState("unknown", "", 0, None, now))
    return {"row": row_of_unseen(of, now), **_stored(nothing)}


def _stored(seen: StoredStream) -> dict[str, Any]:
    detail, report = seen.detail.get("detail") or {}, seen.report
    page = {
        "facts": detail.get("facts"),
        "drawn": seen.detail.get("seen"),
        "lives": report.get("lives") or [],
        "events": [*_past(seen.told), *_lasting(seen.told)],
        "submission": report.get("submission"),
        "differences": report.get("spec_differences") or [],
        "doubts": [words for words in map(report.get, ("spec_doubt", "owner_doubt", "failed_spec")) if words],
        "done": report.get("done") or [],
        "foretold": report.get("foretold") or [],
        "addresses": {"application": report.get("application_url"), "logs": report.get("logs_url")},
        "diagnostics": report.get("diagnostics") or "",
        "failure": detail.get("failure") or "",
        "logs_seconds": detail.get("logs_seconds"),
        "blocked": detail.get("blocked"),
        "freeze": detail.get("freeze") or "",
        "evidence": _evidence(seen, detail.get("facts")),
        "cut": bool(seen.detail.get("cut") or report.get("cut")),
    }
    stored: dict[str, Any] = shown(_of_row(page, seen))
    return stored


def _of_row(page: Mapping[str, Any], seen: StoredStream) -> Mapping[str, Any]:
    """Leave out the addresses of another generation than the last look's, and what is foretold of it."""
    same = seen.report.get("generation") == seen.state.generation
    return page if same else {**page, "addresses": {}, "foretold": []}


def _evidence(seen: StoredStream, facts: object) -> str:
    """Say in words how evidence of a stall is taken, and where it lies; empty if nothing hangs, or did.

    A page asks no cluster, so it can't tell what was taken.
    """
    told = {each.kind for each in seen.told.lasting.values()}
    hangs = seen.state.progress.pulse in _STALLED or EventKind.STALLED in told
    if not hangs:
        return ""
    known = facts if isinstance(facts, Mapping) else {}
    folder, processes = known.get("evidence") or "evidence", known.get("processes") or "processes"
    return (
        f"`kstream streams evidence {seen.stream}` takes the threads of its {processes}, and says which task stands "
        f"still. What was taken lies on HDFS below `{folder}`, a folder for each generation."
    )


def _past(told: Ledger) -> Iterator[dict[str, Any]]:
    for event in told.past:
        yield _event(event.kind, event.about, event.since, event.until, event.why)


def _lasting(told: Ledger) -> Iterator[dict[str, Any]]:
    for event in told.lasting.values():
        yield _event(event.kind, event.about, event.since, None, event.why)


def _event(kind: EventKind, about: str, since: datetime, until: datetime | None, why: str) -> dict[str, Any]:
    words = f"{WORDS[kind][0]} ({about})" if about else WORDS[kind][0]
    ended = until.isoformat() if until else None
    return {"kind": kind.value, "words": words, "since": since.isoformat(), "until": ended, "why": why}
