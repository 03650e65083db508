"""What keeps a stream from being started or restarted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Obstacle(StrEnum):
    """The kind of what stands in the way. REFUSED: what the supervisor sees forbids it, such as lost positions."""

    FREEZE = "freeze"
    PREFLIGHT = "preflight"
    REFUSED = "refused"
    KILLED = "killed by a person"
    BREAKER = "circuit breaker"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Blocked:
    """An obstacle. `since` is None if it is not known; `why` are the words of the task's log, with the way out."""

    by: Obstacle
    since: datetime | None
    why: str

    def __str__(self) -> str:
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        return f"BLOCKED{since} ({self.by})"
