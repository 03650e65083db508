"""Deferred tasks whose looks don't come, by what was stored: no triggerer serves them, whatever the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.stream_state import Rounds, StreamState, Unlooked
from airflow_kstream.policy.states.due import late_after, stored_again_after

# A store that took a look this lately takes others.
_WORKS = timedelta(minutes=2)
_ADVICE = (
    "see that a triggerer runs and that [triggerer] capacity (1000 unless it is set) holds all deferred tasks: "
    "`airflow kstream streams status` counts those that wait"
)


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
