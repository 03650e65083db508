"""The clock of our own: how long one supervisor has seen each sign of a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import Looks, Sign
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.restart.looks import further, furthest, signs

# Seconds between two looks that count as looking. A supervisor that was frozen, or whose servers were away, has not
# seen what happened in between: each look then adds this much at most, so a wait still ends.
_LONGEST_STEP = 20.0


def _monotonic() -> float:
    return time.monotonic()


@dataclass
class SignMemory:
    """The signs of one stream since they were first seen, by this host's monotonic clock.

    `furthest` are the furthest positions that this supervisor, or one before it, saw `generation` reach.
    `look_every` is the usual time between two looks.
    """

    clock: Callable[[], float] = _monotonic
    furthest: Mapping[str, Position] = field(default_factory=dict)
    look_every: timedelta = timedelta()
    _ages: dict[Sign, float] = field(default_factory=dict)
    _first: dict[Sign, float] = field(default_factory=dict)
    _last: float | None = None
    generation: int | None = None

    def recall(self, generation: int, reached: Mapping[str, Position]) -> None:
        """Add what an earlier supervisor saw of this generation. A person may have let a newer one start from an older
        position, so nothing of its predecessors is kept."""
        ours = self.furthest if generation == self.generation else {}
        self.generation, self.furthest = generation, furthest(reached, ours)

    @property
    def _longest_step(self) -> float:
        return max(_LONGEST_STEP, 2 * self.look_every.total_seconds())

    def look(self, observation: Observation, verdicts: Iterable[Sign] = ()) -> Looks:
        """Return for how long each sign of this look has been seen without a break.

        `verdicts` are signs that are as true after a pause of any length, as that one batch is still in flight.
        """
        now = self.clock()
        step = 0.0 if self._last is None else min(now - self._last, self._longest_step)
        self._last = now
        self._ages = {sign: self._ages[sign] + step if sign in self._ages else 0.0 for sign in signs(observation)}
        self._first = {sign: self._first.get(sign, now) for sign in verdicts}
        if observation.generation != self.generation:
            self.recall(observation.generation, {})
        self.furthest = further(self.furthest, observation)
        ages = self._ages | {sign: now - first for sign, first in self._first.items()}
        return Looks({sign: timedelta(seconds=age) for sign, age in ages.items()}, self.furthest)
