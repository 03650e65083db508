"""What supervisors remember of a stream from one look to the next.

In memory: for how long one supervisor has seen each sign, by its own clock. In the stream's folder, for its successors:
the furthest positions that checkpoints were seen at, and the ends that nobody planned. Each record of an end repeats
those before it, so that one read gives the history and old generations can be forgotten. A record is written once and
never changes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.printable import storable
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.contract import ended_file, failed_marker, recorded_ends
from airflow_kstream.model.streams.generation import DesiredState, Position, StreamId
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.looks import NOWHERE, Looks, ReachedPositions, Sign
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.restart.looks import further, furthest, signs
from airflow_kstream.supervise.streams.folder.formats import read_ends, written_ends
from airflow_kstream.supervise.streams.folder.run import ActionLog, StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder, new_nonce

_DAY = timedelta(days=1)
# Of those older than a day, for people; of those within it, more than any pace allows.
_OLD_KEPT, _KEPT = 20, 500
# More than a reader between its listing and its reading ever lags behind.
RECORDS_KEPT = 3
# Positions of no generation.
_NOTHING: tuple[int, Mapping[str, Position]] = (-1, MappingProxyType({}))
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


def failure_of(hdfs: Hdfs, stream: StreamId, observation: Observation) -> str:
    """Return the error of the current generation's failed query; empty if its driver left no readable one."""
    marker = failed_marker(observation.generation)
    if marker not in observation.files:
        return ""
    # YARN's diagnostics remain: an unreadable marker must not hide the stream's state.
    with suppress(KstreamError, ValueError, KeyError, TypeError, RecursionError):
        error = str(json.loads(hdfs.read(f"{stream.folder}/{marker}"))["error"])
        return str(storable(without_secrets(error)))
    return ""


def past_ends(folder: StreamFolder, names: frozenset[str]) -> tuple[PastEnd, ...]:
    """Return the recorded ends, oldest first.

    A record that can't be read, such as a newer version's, tells only its generation and its time: the pace of restarts
    goes on from there.
    """
    recorded = recorded_ends(names)
    if not recorded:
        return ()
    name = ended_file(recorded[-1])
    try:
        ends = read_ends(folder.text(name))
    except InvalidInput:
        ends = ()
    if ends and ends[-1].generation == recorded[-1]:
        return ends
    at = folder.written_at(name)
    return (PastEnd(recorded[-1], EndKind.UNKNOWN, "", at, at, timedelta(), worked=False),)


def record_end(folder: StreamFolder, ends: Sequence[PastEnd]) -> bool:
    """Write the last of these ends after the others; return False when another supervisor was quicker: its record
    stands."""
    end = ends[-1]
    old = [one for one in ends if one.at <= end.at - _DAY][-_OLD_KEPT:]
    kept = [*old, *(one for one in ends if one.at > end.at - _DAY)][-_KEPT:]
    text = written_ends(kept, user_at_host(), new_nonce())
    # A writer that was frozen finds no file in its way if newer ones have replaced it since.
    ours = folder.put_once(ended_file(end.generation), text)
    return ours and recorded_ends(folder.names())[-1:] == (end.generation,)


def forget_old_records(folder: StreamFolder, names: frozenset[str]) -> None:
    """Delete all but the last records; the newest always stays."""
    folder.forget(ended_file(generation) for generation in recorded_ends(names)[:-RECORDS_KEPT])


@dataclass
class PositionsReached:
    """A memory of one reconcile. `seen` is what a watcher saw, who may note nothing in the stream's folder."""

    subject: StreamRun
    story: ActionLog
    memory: SignMemory
    seen: ReachedPositions = NOWHERE
    _noted: tuple[int, Mapping[str, Position]] = field(default=_NOTHING)

    def recall(self, observation: Observation) -> None:
        """Read the positions that other supervisors saw: once of a generation that runs, at each look of one that is
        dead, because another may have seen more of it while this one ended it.

        What a watcher saw is noted at once: this process may end by any of its steps, and the next one has no watcher.
        """
        known = self._noted[0] == observation.generation and observation.any_alive
        if known or observation.desired.state is not DesiredState.RUNNING:
            return
        if self._read(observation):
            self.note(observation)

    def note(self, observation: Observation) -> None:
        """Keep the furthest positions for later supervisors, if they have moved on. Nothing fails for the lack of it:
        a stream must be stoppable when a quota is full."""
        claim = observation.claim
        if claim is None or claim.foreign or not self.subject.declared:
            return
        try:
            if self._noted[0] != observation.generation:
                # Of a stream that is held or stopped: its checkpoint may be restored meanwhile.
                self._read(observation)
            if self._noted[0] != observation.generation:
                return
            positions = {path: at for path, at in self.memory.furthest.items() if at.offset >= 0}
            if positions in ({}, self._noted[1], claim.positions):
                return
            self.subject.folder.note_reached(observation.generation, positions)
        except KstreamError as error:
            self.story.tell(f"the positions reached are not noted: {error}")
            return
        self._noted = observation.generation, positions

    def _read(self, observation: Observation) -> bool:
        """Read what earlier supervisors noted; return whether a watcher saw something beside it.

        A note that can't be read is left as it is, and holds up nothing: a stream would end at its horizon for it.
        """
        number = observation.generation
        reached: Mapping[str, Position] = {}
        try:
            reached = self.subject.folder.reached(number, observation.files)
            self._noted = number, reached
        except InvalidInput as error:
            self.story.tell_once(error.message)
        seen = self.seen.positions if self.seen.concerns(number, observation.nonce) else {}
        self.memory.recall(number, furthest(reached, seen))
        return bool(seen)
