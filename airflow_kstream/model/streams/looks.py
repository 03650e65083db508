"""The signs that a supervisor saw at its looks at a stream, and for how long it has seen each by its own clock.

The clocks of ResourceManager, NameNodes and hosts differ by up to the five minutes that Kerberos allows, and a failover
changes the clock. A wait that compares one with another can end before it began, so each wait lasts as long as this
supervisor itself has watched the same sign. A new supervisor begins at zero: that is safe and costs one wait.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self

from airflow_kstream.model.streams.generation import Position


class SignKind(StrEnum):
    """The kind of a sign. ALONE: no application of the stream lives. ABSENT: a claim has no application. UNCLAIMED: an
    application's generation has no claim. QUIET: the checkpoints do not move. LOST: a node is cut
    off from YARN. OVERLONG: a batch, or the way to the first one, takes longer than it may. STARVING: the application
    runs, and no process of it works."""

    ALONE = "alone"
    ABSENT = "absent"
    UNCLAIMED = "unclaimed"
    QUIET = "quiet"
    LOST = "lost"
    OVERLONG = "overlong"
    STARVING = "starving"


@dataclass(frozen=True)
class Sign:
    """Something seen. With another `value` it is another sign, with a time of its own."""

    kind: SignKind
    value: Hashable


@dataclass(frozen=True)
class ReachedPositions:
    """The furthest positions that somebody saw a generation reach in each checkpoint; none of 0 before the first.

    `claim` is the nonce of its claim, empty where it is not known: numbers begin again where a `state_dir` was lost.
    """

    generation: int = 0
    positions: Mapping[str, Position] = field(default_factory=dict)
    claim: str = ""

    def concerns(self, generation: int, claim: str) -> bool:
        return self.generation == generation and (self.claim == claim or not self.claim or not claim)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "generation": self.generation,
            "claim": self.claim,
            "positions": {path: [at.query, at.offset, at.commit] for path, at in self.positions.items()},
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read what `to_json` wrote. Raises ValueError, TypeError: when it is something else."""
        if not isinstance(data, Mapping):
            return cls()
        positions = {
            str(path): Position(None if query is None else str(query), int(offset), int(commit))
            for path, (query, offset, commit) in dict(data.get("positions") or {}).items()
        }
        return cls(int(data.get("generation") or 0), positions, str(data.get("claim") or ""))


NOWHERE = ReachedPositions()


@dataclass(frozen=True)
class Looks:
    """The time for which each sign has been seen without a break, and the furthest position seen in each checkpoint."""

    ages: Mapping[Sign, timedelta] = field(default_factory=dict)
    furthest: Mapping[str, Position] = field(default_factory=dict)

    def age(self, sign: Sign) -> timedelta:
        """Return how long it has been seen; zero at the first look, so nothing is concluded from a single one."""
        return self.ages.get(sign, timedelta())

    def age_of(self, kind: SignKind) -> timedelta:
        """Return how long the sign of this kind has been seen; zero when there is none."""
        return max((age for sign, age in self.ages.items() if sign.kind is kind), default=timedelta())
