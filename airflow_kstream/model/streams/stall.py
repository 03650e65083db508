"""The heartbeat of a query as its checkpoint shows it, and a batch that hangs: what a watcher concluded of it, what an
examination found, and the restarts of earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow_kstream.model.durations import format_duration


@dataclass(frozen=True)
class Stall:
    """A batch of a generation that a watcher found in flight for longer than `limit`, twice.

    `claim` is the nonce of the generation's claim, `path` is the checkpoint, `lasts` is how long the batch was in
    flight then, by the NameNode's clock. One that is not `planned` has input that waits, and the time is that since the
    last plan. `unit` is the engine's word for a batch; one that comes by the clock is `overdue` instead of in flight,
    and the time is that since the one before.
    """

    generation: int
    claim: str
    path: str
    batch: int
    limit: timedelta
    lasts: timedelta
    planned: bool = True
    unit: str = "batch"
    overdue: bool = False

    @property
    def name(self) -> str:
        return f"{self.unit} {self.batch}"

    def __str__(self) -> str:
        state = "has been in flight" if self.planned else "has input, and has not been planned"
        state = "has not come" if self.overdue else state
        times = f"{format_duration(self.lasts)}, longer than {format_duration(self.limit)}"
        return f"{self.name} {state} for {times}"

    def is_same(self, other: Stall) -> bool:
        """Return whether both are of one batch of one generation, whenever each was seen."""
        mine, theirs = ((one.generation, one.claim, one.path, one.batch) for one in (self, other))
        return mine == theirs

    def to_json(self) -> dict[str, Any]:
        """Return plain data, durations in seconds."""
        return {
            "generation": self.generation,
            "claim": self.claim,
            "path": self.path,
            "batch": self.batch,
            "limit": self.limit.total_seconds(),
            "lasts": self.lasts.total_seconds(),
            "planned": self.planned,
            "unit": self.unit,
            "overdue": self.overdue,
        }

    @classmethod
    def from_json(cls, data: object) -> Stall | None:
        """Read what `to_json` wrote; None for anything else, because a watcher finds a stall again."""
        if not isinstance(data, Mapping):
            return None
        try:
            return cls(
                int(data["generation"]),
                str(data["claim"]),
                str(data["path"]),
                int(data["batch"]),
                timedelta(seconds=float(data["limit"])),
                timedelta(seconds=float(data["lasts"])),
                bool(data.get("planned", True)),
                str(data.get("unit") or "batch"),
                bool(data.get("overdue", False)),
            )
        except (KeyError, ValueError, TypeError, OverflowError):
            return None


@dataclass(frozen=True)
class PastStall:
    """A generation that was ended because its batch hung; `at` by the NameNode's clock."""

    generation: int
    batch: int
    at: datetime


@dataclass(frozen=True)
class Examination:
    """A look into the processes of a stalled stream, `at` by the NameNode's clock.

    `dumped` is whether the threads of the process that leads and of all that work were seen often enough to tell,
    `hangs` is what stood still among those that work on the batch, in words. `moves` is whether the engine counted
    anything more while it lasted; `progress` are its counts at the end.
    """

    stall: Stall
    at: datetime
    dumped: bool
    hangs: tuple[str, ...] = ()
    moves: bool = False
    progress: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "stall": self.stall.to_json(),
            "at": self.at.isoformat(),
            "dumped": self.dumped,
            "hangs": list(self.hangs),
            "moves": self.moves,
            "progress": self.progress,
        }

    @classmethod
    def from_json(cls, data: object) -> Examination | None:
        """Read what `to_json` wrote; None for anything else: then the next examination is the first."""
        if not isinstance(data, Mapping) or (stall := Stall.from_json(data.get("stall"))) is None:
            return None
        try:
            return cls(
                stall,
                datetime.fromisoformat(data["at"]),
                bool(data["dumped"]),
                tuple(map(str, data["hangs"])),
                bool(data["moves"]),
                str(data["progress"]),
            )
        except (KeyError, ValueError, TypeError):
            return None


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
    """A pulse and its reason. `commit_age` is the time since the last commit, None if there is none.

    `starving` is whether it stands still because no process of it works.
    """

    pulse: Pulse
    commit_age: timedelta | None
    why: str
    starving: bool = False
