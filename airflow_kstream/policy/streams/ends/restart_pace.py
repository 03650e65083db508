"""When the next generation may be submitted after some that ended by themselves: backoff, budget, circuit breaker.

Exponential backoff with full jitter: AWS Architecture Blog, "Exponential Backoff And Jitter" (2015).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.stream_policies import FailurePolicy

_DAY = timedelta(days=1)
# Of `backoff`. Only the next attempt shows that the environment answers again, so it must not be far; and a thousand
# streams that each try once in so long a time are not a storm.
_LONGEST_OF_AN_OUTAGE = 10


@dataclass(frozen=True)
class Attempt:
    """The earliest moment for the next generation; `breaker` says why the circuit breaker is open, else empty."""

    at: datetime
    breaker: str = ""


def next_attempt(policy: FailurePolicy, ends: Sequence[PastEnd], seed: str, cleared: datetime | None) -> Attempt | None:
    """Return when a successor may be submitted; None if no end since `cleared`, a person's order, counts.

    The jitter follows from `seed` and the last generation: every supervisor computes the same moment.
    """
    since = [end for end in ends if cleared is None or end.at > cleared]
    if not since:
        return None
    last, counted = since[-1], _in_a_row(policy, since)
    if last.kind is EndKind.DONE:
        return Attempt(max(last.at, last.claimed + _longest_wait(policy, _successes(since))))
    why = _repeats(policy, counted) or _budget(policy, since)
    jitter = random.Random(f"{seed}/{last.generation}").random()
    pause = policy.probe_every if why else _pause(policy, counted, jitter)
    # A probe has no jitter: the ends that it follows had theirs.
    return Attempt(max(last.at + pause, _budget_allows(policy, since)), why)


def _successes(ends: Sequence[PastEnd]) -> int:
    """Return how many of the last ends were successes in a row. Their pauses count from their claims: a job that
    succeeds now and then is followed at once, and one that succeeds every minute is not."""
    return sum(1 for _ in takewhile(lambda end: end.kind is EndKind.DONE, reversed(ends)))


def _in_a_row(policy: FailurePolicy, ends: Sequence[PastEnd]) -> list[PastEnd]:
    """Return the last end that followed a stable life, and all after it, without what the environment had ended before
    a generation made progress again."""
    in_a_row: list[PastEnd] = []
    worked = False
    for end in reversed(ends):
        if not (worked and end.shared):
            in_a_row.append(end)
        worked = worked or end.worked
        if _was_stable(policy, end):
            break
    return in_a_row[::-1]


def _was_stable(policy: FailurePolicy, end: PastEnd) -> bool:
    """Return True if the generation lasted; a source that brings nothing lets its stream commit nothing all day."""
    if end.kind is EndKind.DONE:
        return True
    return end.lasted >= policy.stable_after and (end.worked or end.lasted >= _DAY)


def _pause(policy: FailurePolicy, counted: Sequence[PastEnd], jitter: float) -> timedelta:
    """Return the pause after the last of these ends. Those of the environment and the job's own lengthen it apart: an
    outage neither forgives what the job did itself nor adds to it."""
    alike = sum(end.shared is counted[-1].shared for end in counted)
    if not counted[-1].shared:
        return jitter * _longest_wait(policy, alike)
    # A job that finds its server away may end within a second.
    shortest = _longest_wait(policy, 1)
    return shortest + jitter * (min(_longest_wait(policy, alike + 1), _LONGEST_OF_AN_OUTAGE * shortest) - shortest)


def _longest_wait(policy: FailurePolicy, ends: int) -> timedelta:
    doubled: int = 2 ** min(ends - 1, 30)
    return min(policy.longest_backoff, policy.backoff * doubled)


def _repeats(policy: FailurePolicy, counted: Sequence[PastEnd]) -> str:
    alike = _alike_at_the_end(counted)
    if len(alike) < policy.repeats or alike[-1].at - alike[0].at < policy.repeated_over:
        return ""
    over = format_duration(alike[-1].at - alike[0].at)
    return f"{len(alike)} generations in a row ended of the same error over {over}, and none made progress"


def _alike_at_the_end(ends: Sequence[PastEnd]) -> list[PastEnd]:
    """Return the last ends that have one fingerprint, no progress and no other stream's company, oldest first."""
    alike: list[PastEnd] = []
    for end in reversed(ends):
        if end.worked or end.shared or not end.fingerprint or end.fingerprint != ends[-1].fingerprint:
            break
        alike.insert(0, end)
    return alike


def _budget(policy: FailurePolicy, ends: Sequence[PastEnd]) -> str:
    """Return why the restarts of this day have to be spread; empty while at most half of them are used."""
    last = ends[-1]
    if not last.costs:
        return ""
    spent = [end for end in ends if end.costs and end.at > last.at - _DAY]
    if 2 * len(spent) <= policy.per_day:
        return ""
    return f"{len(spent)} generations ended by themselves within a day, and {policy.per_day} restarts are allowed"


def _budget_allows(policy: FailurePolicy, ends: Sequence[PastEnd]) -> datetime:
    """Return when one more restart is within the budget of the 24 hours before it.

    Each end that costs was followed by one restart: the claim of the generation that ended next.
    """
    if not ends[-1].costs:
        return ends[-1].at
    costly = [index for index, end in enumerate(ends) if end.costs]
    if len(costly) <= policy.per_day:
        return ends[-1].at
    return ends[costly[-policy.per_day - 1] + 1].claimed + _DAY
