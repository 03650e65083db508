"""The begin of each trouble is an event once, and its end is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from airflow_kstream.model.event import Event, EventKind, Lasting, Ledger, Over, Trouble

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
    lasting = {key: each for key, each in told.lasting.items() if each not in over}
    lasting |= {event.key: Lasting(event.kind, event.since, event.why, event.about) for event in begins}
    past = (*told.past, *(Over(each.kind, each.since, now, each.why, each.about) for each in over))[-_KEPT:]
    return Ledger(lasting, told.changes + len(ends) + len(begins), past), (*ends, *begins)


def newer(stored: Ledger, carried: Ledger) -> Ledger:
    """Return the ledger that knows more. One of them may be lost: the stored one is a cache, a retry carries none."""
    more = stored if stored.changes > carried.changes else carried
    past = sorted({*stored.past, *carried.past}, key=lambda event: event.until)
    return replace(more, past=tuple(past[-_KEPT:]))
