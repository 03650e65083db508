"""The progress that a checkpoint on HDFS shows, and what an engine tells of those that come by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.stream_policies import Backlog


@dataclass(frozen=True)
class Clockwork:
    """The word of an engine on checkpoints that come by the clock, whether or not there is input.

    The newest may be `limit` old; the next is due `interval` after it, None if that is not known. `unit` and `worker`
    are the engine's words for a checkpoint and for a process that works. What is not known is None or empty.
    """

    unit: str
    worker: str
    limit: timedelta
    interval: timedelta | None = None
    trouble: str = ""
    """Why the next one does not come, in the words of the process that leads."""
    workers: int | None = None
    """The processes that work."""
    refusal: str = ""
    """Why the last one that was to work could not start, in YARN's words."""
    waits: bool = False
    """Whether YARN has yet to give what the leader wants."""
    restarts: int = 0
    """How often the job restarted inside, as far as that was seen, since its newest checkpoint."""
    moves: bool | None = None
    """Whether the job read records between two looks. None: it can't be told."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint at one moment. `offsets` and `commits` map batch ids to the file's modification time, by the
    NameNode's clock; `query` is the id in `metadata`.

    A checkpoint that does not exist has empty maps and a query of None. `dstreams` is when Spark's older streaming last
    wrote a checkpoint of its own there (DStreams' `checkpoint-<milliseconds>`), None if it never did. `backlog` is what
    waits in Kafka; None if nobody asked, or the query reads something else. `writers` are HDFS's owners of the files in
    both logs. `clock` is set for checkpoints that come by the clock: each is a batch, planned when it is complete.
    """

    path: str
    query: str | None
    offsets: Mapping[int, datetime] = field(default_factory=dict)
    commits: Mapping[int, datetime] = field(default_factory=dict)
    dstreams: datetime | None = None
    backlog: Backlog | None = None
    writers: frozenset[str] = frozenset()
    clock: Clockwork | None = None

    @property
    def position(self) -> Position:
        return Position(self.query, max(self.offsets, default=-1), max(self.commits, default=-1))

    @property
    def empty(self) -> bool:
        """Return True if no batch was ever planned in it."""
        return not self.offsets and not self.commits

    @property
    def absent(self) -> bool:
        """Return True if no query ever started in it: the first file of each is its metadata."""
        return self.empty and self.query is None and self.dstreams is None

    @property
    def quiescent(self) -> bool:
        """Return True if every planned batch is committed, so that no batch is repeated after a stop."""
        return self.position.offset == self.position.commit

    @property
    def newest_committed(self) -> int | None:
        """Return the newest batch that both logs list, None if there is none."""
        return max(self.offsets.keys() & self.commits.keys(), default=None)

    @property
    def last_commit(self) -> datetime | None:
        return max(self.commits.values(), default=None)

    @property
    def last_move(self) -> datetime | None:
        return max((*self.offsets.values(), *self.commits.values()), default=None)

    def durations(self) -> tuple[timedelta, ...]:
        """Return the durations of the batches that both logs still list, oldest first."""
        both = sorted(self.offsets.keys() & self.commits.keys())
        return tuple(self.commits[batch] - self.offsets[batch] for batch in both)

    def intervals(self) -> tuple[timedelta, ...]:
        """Return the times between the plans of successive batches: how often batches come, not how long they take."""
        planned = [self.offsets[batch] for batch in sorted(self.offsets)]
        return tuple(later - earlier for earlier, later in pairwise(planned))
