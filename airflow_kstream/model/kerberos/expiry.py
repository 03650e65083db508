"""One check of things that expire, such as tickets or tokens: those about to, and a report of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from airflow_kstream.model.durations import format_duration


class Expiring(Protocol):
    """A thing that expires. What is missing has expired long ago."""

    def remaining(self, now: datetime) -> timedelta:
        """Return the time left; negative once it has expired."""

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data."""


ExpiringT = TypeVar("ExpiringT", bound=Expiring)


@dataclass(frozen=True)
class ExpiryCheck(Generic[ExpiringT]):
    """The things of one `kind` ("tickets") from one `source`, at `now`; those with at most `within` left are due."""

    kind: str
    source: str
    within: timedelta
    now: datetime
    things: Sequence[ExpiringT]

    @property
    def due(self) -> list[ExpiringT]:
        """Return those that are due, the most urgent first."""
        due = [thing for thing in self.things if thing.remaining(self.now) <= self.within]
        return sorted(due, key=lambda thing: thing.remaining(self.now))

    @property
    def words(self) -> str:
        count = f"{len(self.due)} of {len(self.things)} {self.kind}"
        return f"{self.source}: {count} expire within {format_duration(self.within)}"

    def report(self, rows: int = 20) -> dict[str, Any]:
        """Return plain data of bounded size."""
        return {
            "source": self.source,
            "at": self.now.isoformat(),
            self.kind: len(self.things),
            "expiring": [thing.to_json(self.now) for thing in self.due[:rows]],
        }
