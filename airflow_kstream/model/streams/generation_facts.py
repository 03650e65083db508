"""Facts about a stream that pages draw: the lives of its generations, and of the newest one its end and its batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.plain import Group, fields_of
from airflow_kstream.model.streams.generation import Desired
from airflow_kstream.model.streams.horizon import Horizon


@dataclass(frozen=True)
class Progress:
    """The progress that one checkpoint shows.

    `batches` are the newest ones that are planned and committed, each with its number and its seconds, oldest first.
    `in_flight` is since when the next one is planned, None if none is. Times are the NameNode's.
    """

    path: str
    planned: int
    committed: int
    last_commit: datetime | None
    in_flight: datetime | None
    stall_after: timedelta
    batches: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Life:
    """A generation from its claim to its end, by the NameNode's clock.

    `why` is why it was claimed, `by` who claimed it. `ended` is None for one that nobody ended yet, `end` why it ended;
    `planned` is False for an end of its own.
    """

    generation: int
    began: datetime
    by: str
    why: str
    adopted: bool = False
    ended: datetime | None = None
    end: str = ""
    planned: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601."""
        return fields_of(self)


@dataclass(frozen=True)
class ClaimFacts(Group):
    """The claim of a generation."""

    claimed: datetime | None
    """When it was claimed, by the NameNode's clock."""
    claimed_by: str
    reason: str
    """Why it was claimed: why its predecessor was replaced."""
    adopted: bool


@dataclass(frozen=True)
class TokenFacts(Group):
    """The tokens of a generation."""

    credentials: str
    """How it authenticates."""
    issued: datetime | None
    """A lower bound of when its tokens were issued, by the NameNode's clock."""
    renew_interval: timedelta | None
    max_lifetime: timedelta | None


@dataclass(frozen=True)
class GenerationFacts:
    """Facts about the newest generation. Each is None or empty if it is not known."""

    generation: int
    claim: ClaimFacts
    tokens: TokenFacts
    horizon: Horizon | None
    desired: Desired
    stop_waits: timedelta | None = None
    """How long a stop waits for its batch."""
    evidence: str = ""
    """The folder on HDFS below which what is kept of its generations lies."""
    progress: tuple[Progress, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601, durations in seconds."""
        return fields_of(self)
