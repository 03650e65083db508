"""The begin of each trouble is an event once, and its end is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from functools import reduce

from airflow_kstream.model.streams.event import EndedEvent, Event, EventKind, LastingEvent, Ledger, Trouble

# Events that are over, for people: what a page can list. A deferred task carries them.
_KEPT = 15


def compare(
    told: Ledger,
    seen: Iterable[Trouble],
    known: Collection[EventKind],
    now: datetime,
    cluster: str,
    stream: str = "",
) -> tuple[Ledger, tuple[Event, ...]]:
    """Return the ledger after a look, and the events to tell: ends first, then begins.

    `known` are the kinds that this look could judge: an event of another kind neither begins nor ends by it. A trouble
    that lasts is one event, though its words change.
    """
    troubles = {trouble.key: trouble for trouble in seen if trouble.kind in known}
    over = [each for key, each in told.lasting.items() if each.kind in known and key not in troubles]
    new = [trouble for key, trouble in troubles.items() if key not in told.lasting]
    if not over and not new:
        return told, ()
    ends = [Event(each.kind, cluster, stream, each.since, each.why, each.about, until=now) for each in over]
    begins = [Event(trouble.kind, cluster, stream, now, trouble.why, trouble.about) for trouble in new]
    events = (*ends, *begins)
    return reduce(after, events, told), events


def after(told: Ledger, event: Event) -> Ledger:
    """Return the ledger once this event was told, too."""
    lasting = {key: each for key, each in told.lasting.items() if key != event.key}
    past = told.past
    if event.until is None:
        lasting[event.key] = LastingEvent(event.kind, event.since, event.why, event.about)
    else:
        past = (*past, EndedEvent(event.kind, event.since, event.until, event.why, event.about))[-_KEPT:]
    return replace(told, lasting=lasting, changes=told.changes + 1, past=past)


def joined(stored: Ledger, carried: Ledger) -> Ledger:
    """Return what was told in all: by what is stored, and by what a task or a process carried on.

    The one with more changes continues the other. Where the carried one was continued alone, an event lasts if either
    has it, unless the other has its end.
    """
    past = tuple(sorted({*stored.past, *carried.past}, key=lambda event: event.until)[-_KEPT:])
    if not carried.alone:
        more = stored if stored.changes > carried.changes else carried
        return replace(more, past=past, under_way=0)
    lasting = {**_not_over(carried, stored), **_not_over(stored, carried)}
    return Ledger(lasting, max(stored.changes, carried.changes) + 1, past)


def _not_over(told: Ledger, other: Ledger) -> dict[tuple[EventKind, str], LastingEvent]:
    def is_over(event: LastingEvent) -> bool:
        return any((past.kind, past.about) == event.key and past.until >= event.since for past in other.past)

    return {key: event for key, event in told.lasting.items() if not is_over(event)}
