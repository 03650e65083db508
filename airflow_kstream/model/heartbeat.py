"""What a checkpoint says about whether its query makes progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Pulse(StrEnum):
    HEALTHY = "HEALTHY"
    IDLE = "IDLE"
    STALLED = "STALLED"
    START_STALLED = "START_STALLED"
    STARTING = "STARTING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Heartbeat:
    """`commit_age` is the time since the last commit, None when there is none; `why` is for people."""

    pulse: Pulse
    commit_age: timedelta | None
    why: str
