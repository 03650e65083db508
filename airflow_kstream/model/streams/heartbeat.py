"""The heartbeat of a query, as its checkpoint shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Pulse(StrEnum):
    """The verdict on a query's progress. SLOW is a batch in flight for too long that was found so only once."""

    HEALTHY = "HEALTHY"
    IDLE = "IDLE"
    STALLED = "STALLED"
    START_STALLED = "START_STALLED"
    STARTING = "STARTING"
    SLOW = "SLOW"
    CHANGED = "CHECKPOINT_CHANGED"
    NO_CHECKPOINT = "NO_CHECKPOINT"
    UNKNOWN = "UNKNOWN"


# What a query shows that does not get on as it should, whether or not that is an event already.
LATE = frozenset({Pulse.SLOW, Pulse.STALLED, Pulse.START_STALLED})


@dataclass(frozen=True)
class Heartbeat:
    """A pulse and its reason. `commit_age` is the time since the last commit, None if there is none."""

    pulse: Pulse
    commit_age: timedelta | None
    why: str
