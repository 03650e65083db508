"""One stream's page: its row, its past generations, its events, its batches and its submission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.plain import as_iso
from airflow_kstream.model.streams.event import WORDS, EventKind, Ledger
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.views.pages.fleet import StoredStream, UnseenStream, row_of, row_of_unseen
from airflow_kstream.views.pages.kept import shown
from airflow_kstream.views.pages.stored import look_in, report_in

_STALLED = {Pulse.STALLED, Pulse.START_STALLED}


def stream_page(of: StoredStream | UnseenStream, now: datetime, late: timedelta) -> dict[str, Any]:
    """Return all that is stored of one stream, if anything is; `late` is the age after which a look is stale."""
    if isinstance(of, StoredStream):
        return {"row": row_of(of, now, late), **_stored(of)}
    nothing = StoredStream(of.cluster, of.stream, StreamState("unknown", "", 0, None, now))
    return {"row": row_of_unseen(of, now), **_stored(nothing)}


def _stored(seen: StoredStream) -> dict[str, Any]:
    detail, report = look_in(seen.detail), report_in(seen.report)
    page = {
        "facts": detail["facts"],
        "drawn": as_iso(seen.detail.get("seen")),
        **{name: report[name] for name in ("lives", "submission", "done", "foretold", "diagnostics")},
        "events": [*_past(seen.told), *_lasting(seen.told)],
        "differences": report["spec_differences"],
        "doubts": [report[name] for name in ("spec_doubt", "owner_doubt", "failed_spec") if report[name]],
        "addresses": {"application": report["application_url"], "logs": report["logs_url"]},
        **{name: detail[name] for name in ("failure", "logs_seconds", "blocked", "freeze")},
        "evidence": _evidence(seen, detail["facts"] or {}),
        "cut": bool(seen.detail.get("cut") or seen.report.get("cut")),
    }
    stored: dict[str, Any] = shown(_of_row(page, seen))
    return stored


def _of_row(page: Mapping[str, Any], seen: StoredStream) -> Mapping[str, Any]:
    """Leave out the addresses of another generation than the last look's, and what is foretold of it."""
    same = seen.report.get("generation") == seen.state.generation
    return page if same else {**page, "addresses": {}, "foretold": []}


def _evidence(seen: StoredStream, facts: Mapping[str, Any]) -> str:
    """Say in words how evidence of a stall is taken, and where it lies; empty if nothing hangs, or did.

    A page asks no cluster, so it can't tell what was taken.
    """
    told = {each.kind for each in seen.told.lasting.values()}
    hangs = seen.state.progress.pulse in _STALLED or EventKind.STALLED in told
    if not hangs:
        return ""
    folder, processes = facts.get("evidence") or "evidence", facts.get("processes") or "processes"
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
