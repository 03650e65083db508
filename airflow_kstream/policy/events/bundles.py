"""Bundles: one message tells what many streams of one cluster have in common.

A queue that is gone or a slow NameNode concerns a thousand streams at once, or within minutes of each other. So a
stream's event waits for a moment for others of its kind. The next bundle of that kind waits for longer, up to a
quarter of an hour, until there was none for twice that time: a storm of an hour is a handful of messages, and a lone
event leaves at once. An event that is over before its message left has none. Each trouble has one event for its begin
and one for its end.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce

from airflow_kstream.model.printable import printable_line
from airflow_kstream.model.streams.event import EndedEvent, Event, EventKind, LastingEvent, Ledger, Trouble

# Events that are over, for people: what a page can list. A deferred task carries them.
_KEPT = 15

# Seconds that the first event of a kind waits for others, and that one of a storm may wait.
FIRST, LONGEST = 20.0, 900.0
# Events that wait at a time; more than a very large fleet has at once.
MOST = 5000


@dataclass(frozen=True)
class Key:
    """The events that fit into one message: of one kind and cluster, all begins or all ends, for one notifier."""

    notifier: Hashable
    cluster: str
    kind: str
    ended: bool


@dataclass(frozen=True)
class BundlePace:
    """The pace of one kind of bundle: the last one's time, and for how long its events had waited."""

    sent: float
    waited: float

    def next_wait(self, now: float) -> float:
        return FIRST if now - self.sent > 2 * self.waited else min(2 * self.waited, LONGEST)


@dataclass(frozen=True)
class Bundle:
    """Events that wait for others of their kind, since `opened`, until `due`."""

    events: tuple[Event, ...]
    opened: float
    due: float


@dataclass(frozen=True)
class Bundles:
    """The bundles that wait. Times are seconds by one clock."""

    waiting: Mapping[Key, Bundle] = field(default_factory=dict)
    paces: Mapping[Key, BundlePace] = field(default_factory=dict)

    @property
    def next_due(self) -> float | None:
        return min((bundle.due for bundle in self.waiting.values()), default=None)

    @property
    def count(self) -> int:
        return sum(len(bundle.events) for bundle in self.waiting.values())

    @property
    def full(self) -> bool:
        return self.count >= MOST

    def add(self, notifier: Hashable, event: Event, now: float) -> Bundles:
        """Return the bundles with this event; an end takes back a begin that still waits."""
        begins = Key(notifier, event.cluster, event.kind.value, ended=False)
        if event.ended and (bundle := self.waiting.get(begins)) is not None:
            kept = tuple(each for each in bundle.events if not _same(each, event))
            if len(kept) < len(bundle.events):
                return self._with(begins, replace(bundle, events=kept))
        key = replace(begins, ended=event.ended)
        wait = self.paces[key].next_wait(now) if key in self.paces else FIRST
        bundle = self.waiting.get(key, Bundle((), now, now + wait))
        return self._with(key, replace(bundle, events=(*bundle.events, event)))

    def take(self, now: float) -> tuple[Bundles, dict[Key, tuple[Event, ...]]]:
        """Return the bundles that go on waiting, and the events of those that are due."""
        if not self.waiting and not self.paces:
            return self, {}
        due = {key: bundle for key, bundle in self.waiting.items() if now >= bundle.due}
        paces = {key: pace for key, pace in self.paces.items() if now - pace.sent <= 2 * pace.waited}
        paces |= {key: BundlePace(now, bundle.due - bundle.opened) for key, bundle in due.items()}
        waiting = {key: bundle for key, bundle in self.waiting.items() if key not in due}
        return Bundles(waiting, paces), {key: bundle.events for key, bundle in due.items()}

    def _with(self, key: Key, bundle: Bundle) -> Bundles:
        others = {each: waits for each, waits in self.waiting.items() if each != key}
        return replace(self, waiting={**others, key: bundle} if bundle.events else others)


def words(events: tuple[Event, ...], shown: int = 20) -> str:
    """Return one message for a bundle: of several events, the first one's words and whose the others are."""
    first, *others = events
    if not others:
        return first.words
    names = [each.about or each.subject for each in others]
    more = len(names) - shown
    listed = ", ".join([*names[:shown], *([f"{more} more"] if more > 0 else [])])
    return f"{first.words}. And so for {len(others)} more: {printable_line(listed)}"


def _same(begin: Event, end: Event) -> bool:
    return begin.stream == end.stream and begin.key == end.key


def compare(
    told: Ledger,
    seen: Iterable[Trouble],
    known: Collection[EventKind],
    now: datetime,
    cluster: str,
    stream: str = "",
    app_name: str = "",
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
    begins = [Event(each.kind, cluster, stream, now, each.why, each.about, foretold=each.foretold) for each in new]
    events = tuple(replace(event, app_name=app_name) for event in (*ends, *begins))
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
