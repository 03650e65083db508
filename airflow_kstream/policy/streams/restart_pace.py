"""When the next generation may be submitted after some that ended by themselves: backoff, budget, circuit breaker.

Exponential backoff with full jitter: AWS Architecture Blog, "Exponential Backoff And Jitter" (2015).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.generation_end import PastEnd
from airflow_kstream.model.stream_policies import FailurePolicy

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Attempt:
    """The earliest moment for the next generation; `breaker` says why the circuit breaker is open, else empty."""

    at: datetime
    breaker: str = ""


def next_attempt(policy: FailurePolicy, ends: Sequence[PastEnd], seed: str, cleared: datetime | None) -> Attempt | None:
    """Return when a successor may be submitted; None if no end since `cleared`, a person's word, counts.

    The jitter follows from `seed` and the last generation: every supervisor computes the same moment.
    """
    counted = _since_it_was_stable(policy, _since(ends, cleared))
    if not counted:
        return None
    last = counted[-1]
    if why := _breaker(policy, counted, _since(ends, cleared)):
        return Attempt(last.at + policy.probe_every, why)
    jitter = random.Random(f"{seed}/{last.generation}").random()
    return Attempt(last.at + jitter * _longest_wait(policy, len(counted)))


def _since(ends: Sequence[PastEnd], cleared: datetime | None) -> list[PastEnd]:
    return [end for end in ends if cleared is None or end.at > cleared]


def _since_it_was_stable(policy: FailurePolicy, ends: Sequence[PastEnd]) -> list[PastEnd]:
    """Return the last end that followed a stable life, and all after it."""
    stable = (index for index, end in enumerate(ends) if end.committed and end.lasted >= policy.stable_after)
    return list(ends[max(stable, default=0) :])


def _longest_wait(policy: FailurePolicy, ends: int) -> timedelta:
    doubled: int = 2 ** min(ends - 1, 30)
    return min(policy.longest_backoff, policy.backoff * doubled)


def _breaker(policy: FailurePolicy, counted: Sequence[PastEnd], ends: Sequence[PastEnd]) -> str:
    alike = _alike_at_the_end(counted)
    if len(alike) >= policy.repeats and alike[-1].at - alike[0].at >= policy.repeated_over:
        over = format_duration(alike[-1].at - alike[0].at)
        return f"{len(alike)} generations in a row ended of the same error over {over}, and none committed"
    blamed = [end for end in ends if not end.kind.blameless and end.at > counted[-1].at - _DAY]
    if len(blamed) > policy.per_day:
        return f"{len(blamed)} generations ended by themselves within a day; {policy.per_day} are allowed"
    return ""


def _alike_at_the_end(ends: Sequence[PastEnd]) -> list[PastEnd]:
    """Return the last ends that have one fingerprint and had no commit, oldest first."""
    alike: list[PastEnd] = []
    for end in reversed(ends):
        if end.committed or not end.fingerprint or end.fingerprint != ends[-1].fingerprint:
            break
        alike.insert(0, end)
    return alike
