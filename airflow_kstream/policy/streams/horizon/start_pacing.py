"""The order and the pace in which the streams of one cluster start, when many are due at the same moment.

After a freeze, hundreds may be due at once. Each start takes a worker, a spark-submit and containers; and a stream
that dies soon must not wait behind one that has days. All times are seconds by one clock of the watcher's own. `spread`
moves one moment apart for a thousand generations, and gives each program that computes it the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count, islice

from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import GiveUp, Phase, Settled, Step, Stop, Submit, Wait

# Seconds between two starts: ten a minute, so three hundred in half an hour.
SPACING = 6.0
# A stream that is down comes before each one that lives for longer than this.
_DOWN = timedelta(minutes=30)
NO_HURRY = timedelta(days=1)
# Seconds after which one that waits no longer says so has gone: its task was detached, or another triggerer has it.
_GONE = 600.0
_STARTS = (GiveUp, Stop, Submit, Wait)


def may_wait(step: Step, observation: Observation, ends: Horizon | None) -> timedelta | None:
    """Return how long the start that is due, now or after a freeze, may wait; None if none is.

    What a person wants stopped, and a kill of what must not live, wait for no turn.
    """
    frozen = isinstance(step, Settled) and step.phase is Phase.FROZEN
    if observation.desired.state is not DesiredState.RUNNING or not (frozen or isinstance(step, _STARTS)):
        return None
    if not observation.any_alive:
        return _DOWN
    left = ends.remaining(observation.now) if ends else None
    return NO_HURRY if left is None else left


@dataclass(frozen=True)
class _Waiting:
    """A stream that waits for its turn: its start is due by `deadline`, and it was last seen waiting at `seen`."""

    deadline: float
    seen: float


@dataclass(frozen=True)
class Turns:
    """The turns of one cluster's streams. The one with the nearest deadline is first; each takes a slot of SPACING."""

    waiting: Mapping[str, _Waiting] = field(default_factory=dict)
    taken: frozenset[int] = frozenset()

    def waits(self, stream: str, wait: timedelta, now: float) -> Turns:
        """Return the turns with this stream among those that wait. Its deadline never moves away by waiting."""
        there = {name: one for name, one in self.waiting.items() if now - one.seen < _GONE}
        deadline = now + wait.total_seconds()
        before = there.get(stream)
        there[stream] = _Waiting(min(deadline, before.deadline) if before else deadline, now)
        return replace(self, waiting=there)

    def without(self, stream: str) -> Turns:
        return replace(self, waiting={name: one for name, one in self.waiting.items() if name != stream})

    def take(self, stream: str, now: float, within: float) -> tuple[Turns, float | None]:
        """Return the turns and the seconds until this stream's own, if it is within so many; else None."""
        current = int(now // SPACING)
        taken = frozenset(slot for slot in self.taken if slot >= current)
        free = (slot for slot in count(current) if slot not in taken)
        slot = next(islice(free, self._ahead_of(stream), None))
        wait = max(0.0, slot * SPACING - now)
        if wait > within:
            return replace(self, taken=taken), None
        return replace(self.without(stream), taken=taken | {slot}), wait

    def _ahead_of(self, stream: str) -> int:
        ours = self.waiting.get(stream)
        if ours is None:
            return 0
        return sum((one.deadline, name) < (ours.deadline, stream) for name, one in self.waiting.items())


def spread(nonce: str) -> float:
    """Return a number in [0, 1) for the generation whose claim has this nonce."""
    return int.from_bytes(hashlib.sha256(nonce.encode()).digest()[:4], "big") / 2**32
