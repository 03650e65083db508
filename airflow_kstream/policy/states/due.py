"""Turns of what is stored of watched streams: what changed first, then what was not written for longest.

Airflow writes one row after the other, each within 20 to 50 ms, and the same channel serves the triggers' questions.
So a triggerer writes at most `MOST` rows a second, and of those that say nothing new at most `REPEATED`: a thousand
healthy streams are written every seventeen minutes, sixty of them every minute. A value that is too large loses its
longest texts and lists first, and says so.

A task whose looks don't come, by what was stored, is unlooked: no triggerer serves it, whatever the cause.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from heapq import nsmallest
from typing import Any

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.printable import storable
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.stream_state import Rounds, StreamState, Unlooked

# A store that took a look this lately takes others.
_WORKS = timedelta(minutes=2)
_ADVICE = (
    "see that a triggerer runs and that [triggerer] capacity (1000 unless it is set) holds all deferred tasks: "
    "`airflow kstream streams status` counts those that wait"
)

# Bytes of JSON.
VERDICT, DETAIL, REPORT = 1_500, 20_000, 40_000
# Characters that each text may keep, and items that each list may, from step to step. Beyond the first step nothing is
# read at all: the search for secrets takes time with the square of a word's length.
_FIRST, *_STEPS = ((2000, 100), (1000, 50), (500, 20), (300, 10), (200, 8), (120, 5), (60, 3), (30, 2), (12, 1))

# Rows of one process in a second.
MOST, REPEATED = 5, 2
# Seconds: a triggerer writes each row again within the first; of thousands, it takes the second for each stream.
_REWRITTEN, _FOR_EACH = 60.0, 1.0
# Seconds that it waits at most, after the store was away, before it tries again.
LONGEST_PAUSE = 300.0
# Seconds after which a stream that nobody looks at any longer is forgotten.
FORGOTTEN = 3600.0


class Kind(StrEnum):
    """A row of a stream: the first two with its asset, the report as its task's XCom. Values are the keys.

    The task itself stores its report with the asset, too: pages read no XCom.
    """

    VERDICT = "verdict"
    DETAIL = "detail"
    REPORT = "report"


@dataclass(frozen=True)
class Pace:
    """Seconds between two writes of one row: at least `changed`, and `again` if nothing changed; None is never."""

    changed: float
    again: float | None


PACES: Mapping[Kind, Pace] = {
    Kind.VERDICT: Pace(changed=10.0, again=60.0),
    Kind.DETAIL: Pace(changed=30.0, again=60.0),
    Kind.REPORT: Pace(changed=60.0, again=None),
}
_RANKS = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True)
class Row:
    """A row as it should be, and as it was written. Times are seconds by one clock.

    `mark` differs if its content changed, `epoch` if a change does not wait for its pace, as that of a generation.
    `seen` is the last look, `since` when the mark began to hold.
    """

    kind: Kind
    mark: Hashable
    epoch: int
    seen: float
    since: float
    written: float | None = None
    written_mark: Hashable = None
    written_epoch: int = 0

    def saw(self, mark: Hashable, epoch: int, now: float) -> Row:
        since = self.since if (mark, epoch) == (self.mark, self.epoch) else now
        # Each look at a stream does this three times, and `replace` takes three times as long.
        return Row(self.kind, mark, epoch, now, since, self.written, self.written_mark, self.written_epoch)

    def wrote(self, content: Row, now: float) -> Row:
        """Return the row after `content`, what was known when the write began, was written."""
        return replace(self, written=now, written_mark=content.mark, written_epoch=content.epoch)

    def lost(self) -> Row:
        """Return the row after what was written of it is gone."""
        return replace(self, written=None)

    # Each row is asked many times between two looks.
    @cached_property
    def changed(self) -> bool:
        return self.written is None or (self.mark, self.epoch) != (self.written_mark, self.written_epoch)

    @cached_property
    def due(self) -> float | None:
        """Return when it may be written; None while there is nothing new to say, not even that somebody looked."""
        if self.written is None or self.epoch != self.written_epoch:
            return self.since
        pace = PACES[self.kind]
        if self.changed:
            return max(self.since, self.written + pace.changed)
        if pace.again is None or self.seen <= self.written:
            return None
        return self.written + pace.again


# Rounds that did not come this many times are late. A round of looks is at least as long as one of the stored rows.
MISSED = 3


def rewritten_after(streams: int) -> float:
    """Return the seconds after which a row of one of so many streams is written again, where nothing changed."""
    return max(_REWRITTEN, streams * _FOR_EACH)


def late_after(streams: int, every: float = 0.0, *, begun: bool = True) -> timedelta:
    """Return the age after which the last look at one of so many streams, stored by its trigger, is late.

    Where the looks have not `begun`, only its task has looked: the first look of a trigger is stored before others.
    """
    if begun:
        return timedelta(seconds=MISSED * max(rewritten_after(streams), every))
    return timedelta(seconds=MISSED * max(_REWRITTEN, every) + streams / MOST)


def stored_again_after(streams: int) -> timedelta:
    """Return how long after Airflow's store was away all rows are written again."""
    return timedelta(seconds=LONGEST_PAUSE + streams * _FOR_EACH)


Subject = tuple[str, str]
Key = tuple[Subject, Kind]


def next_rows(
    rows: Mapping[Key, Row], held: Mapping[Subject, float], now: float, refused: Collection[Subject] = ()
) -> tuple[Key, ...]:
    """Return the rows of one second, the most urgent first, and those of `refused` subjects behind all others.

    `held` are subjects that wait, until when.
    """
    changed: list[tuple[int, float, Key]] = []
    repeated: list[tuple[float, Key]] = []
    last: list[Key] = []
    for key, row in rows.items():
        # Asked of thousands of rows each second: what is held is due still later.
        due = row.due
        if due is None or due > now:
            continue
        moment = moment_of(key, row, held) if held else due
        if moment is None or moment > now:
            continue
        if key[0] in refused and row.kind is not Kind.REPORT:
            last.append(key)
        elif row.changed:
            changed.append((_RANKS[row.kind], moment, key))
        else:
            repeated.append((moment, key))
    first = [key for _, _, key in nsmallest(MOST, changed)]
    return (*first, *(key for _, key in nsmallest(REPEATED, repeated)), *last[:1])[:MOST]


def next_due(rows: Mapping[Key, Row], held: Mapping[Subject, float]) -> float | None:
    """Return when the next row is due, None if none is."""
    return min((moment for _, moment in _moments(rows, held)), default=None)


def moment_of(key: Key, row: Row, held: Mapping[Subject, float]) -> float | None:
    """Return when this row is due, None if it is not. A report has its place with the task, not with the asset."""
    if row.due is None or row.kind is Kind.REPORT:
        return row.due
    return max(row.due, held.get(key[0], row.due))


def _moments(rows: Mapping[Key, Row], held: Mapping[Subject, float]) -> Iterator[tuple[Key, float]]:
    for key, row in rows.items():
        if (moment := moment_of(key, row, held)) is not None:
            yield key, moment


def fitted(value: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return the value without secrets, in at most so many bytes of JSON.

    `cut` is true in one of which something was left out. A text that was shortened ends with "…"; of a list the last
    items are kept, which are the newest.
    """
    read: dict[str, Any] = _shortened(value, *_FIRST)
    masked: dict[str, Any] = storable(_masked(read))
    if read == value and size(masked) <= most:
        return masked
    for text, items in (_FIRST, *_STEPS):
        shorter: dict[str, Any] = {**_shortened(masked, text, items), "cut": True}
        if size(shorter) <= most:
            return shorter
    return {"version": value.get("version"), "cut": True}


def size(value: Any) -> int:
    """Return the bytes that the value takes as JSON, in ASCII as Airflow stores it."""
    return len(json.dumps(value))


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {str(key): _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value


def _shortened(value: Any, text: int, items: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= text else f"{value[: text - 1]}…"
    if isinstance(value, Mapping):
        return {key: _shortened(item, text, items) for key, item in value.items()}
    return [_shortened(item, text, items) for item in value[-items:]] if isinstance(value, list) else value


def unlooked(states: Mapping[str, StreamState], now: datetime) -> dict[str, Unlooked]:
    """Return the streams whose newest stored look is older than three rounds.

    After Airflow's store was away, all rows are old, and are written again one after the other. So it must last for as
    long as that takes, unless the store works now: then the first look of a trigger comes before others' next ones.
    """
    rounds = {name: state.by.rounds for name, state in states.items() if state.by.rounds}
    begun = [name for name, each in rounds.items() if each.begun]
    # A triggerer may serve streams of other clusters, too.
    streams = max((len(rounds), *(each.streams for each in rounds.values())))
    works = any(_age(states[name], now) <= _WORKS for name in begun)
    return dict(_late(states, rounds, streams, now, works=works))


def _late(
    states: Mapping[str, StreamState], rounds: Mapping[str, Rounds], streams: int, now: datetime, *, works: bool
) -> Iterator[tuple[str, Unlooked]]:
    for name, each in rounds.items():
        age = _age(states[name], now)
        if age > late_after(0 if each.begun else streams, each.every, begun=each.begun):
            at_once = works and not each.begun
            yield name, Unlooked(_why(states[name], age), timedelta() if at_once else stored_again_after(streams))


def _age(state: StreamState, now: datetime) -> timedelta:
    # A time of the future, which nobody can have looked at, hides nothing.
    return abs(now - state.seen)


def _why(state: StreamState, age: timedelta) -> str:
    last = f"the last look at it was {format_duration(age)} ago, at {state.seen:%Y-%m-%d %H:%M:%S} UTC"
    return f"its task {state.by.dag}.{state.by.task} is deferred, and {last}; {_ADVICE}"
