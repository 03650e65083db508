"""The furthest positions that a stream's checkpoints were seen at, remembered and noted for later supervisors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.streams.generation import DesiredState, Position
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.policy.streams.restart.looks import furthest
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from airflow_kstream.supervise.streams.folder.run import ActionLog, StreamRun

_NOTHING: tuple[int, Mapping[str, Position]] = (-1, MappingProxyType({}))


@dataclass
class PositionsReached:
    """A memory of one reconcile. `seen` is what a watcher saw, who may note nothing in the stream's folder."""

    subject: StreamRun
    story: ActionLog
    memory: SignMemory
    seen: ReachedPositions = NOWHERE
    _noted: tuple[int, Mapping[str, Position]] = field(default=_NOTHING)

    def recall(self, observation: Observation) -> None:
        """Read the positions that earlier supervisors saw, once for each generation.

        What a watcher saw is noted at once: this process may end by any of its steps, and the next one has no watcher.
        """
        if self._noted[0] == observation.generation or observation.desired.state is not DesiredState.RUNNING:
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
