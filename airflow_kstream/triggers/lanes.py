"""Lanes in which one cluster's streams are looked at: threads with sessions of their own, one unless it takes long.

A blocking request can't be interrupted. So a stream whose servers answer slowly keeps its lane, and the round goes on
in another one: it delays neither the others' verdicts nor their next round. More lanes also join a long round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.triggers.shared import Opener, Sessions

if TYPE_CHECKING:
    from airflow_kstream.supervise.streams.look.watch import Subject


log = logging.getLogger(__name__)

# Seconds after which a look counts as slow, and after which a round counts as long.
SLOW, LONG = 5.0, 10.0
# At once, for one cluster.
_MOST = 4


class VerdictSource(Protocol):
    """A source of verdicts, such as Watch: it takes a subject when that subject's look begins."""

    def looks(self, subjects: Iterable[Subject]) -> Iterator[tuple[str, Verdict]]: ...


@dataclass
class Round:
    """The streams of one round that no lane has taken yet. It began at `began`, by the loop's clock."""

    began: float
    pending: deque[Subject]
    lanes: list[Lane] = field(default_factory=list)


@dataclass
class Lane:
    """One thread with sessions of its own. `taken` is what it looks at, and since when."""

    sessions: Sessions[VerdictSource]
    task: asyncio.Task[None] | None = None
    taken: tuple[str, float] | None = None

    @property
    def free(self) -> bool:
        return self.task is None or self.task.done()

    def prompt(self, now: float) -> bool:
        """Return whether it works, and its present look is not slow."""
        return not self.free and (self.taken is None or now - self.taken[1] < SLOW)


class Lanes:
    """The lanes of one cluster.

    `deliver` gets each verdict, in the loop, with the time since which it holds; `freed` is called when a lane is free.
    """

    def __init__(
        self,
        conn_id: str,
        opener: Opener[VerdictSource],
        deliver: Callable[[str, Verdict, float], None],
        freed: Callable[[], None],
    ) -> None:
        self._conn_id = conn_id
        self._opener = opener
        self._deliver = deliver
        self._freed = freed
        self._lanes: list[Lane] = []
        self._round: Round | None = None

    @property
    def looking_at(self) -> set[str]:
        return {lane.taken[0] for lane in self._lanes if lane.taken is not None}

    def ready(self) -> bool:
        """Return whether a new round can begin: the last one is taken, and a lane is free or can be opened."""
        return not (self._round and self._round.pending) and self._free() is not None

    def begin(self, subjects: Iterable[Subject], now: float) -> None:
        self._round = Round(now, deque(subjects))
        self._join(self._round)

    def help(self, now: float) -> float | None:
        """Let another lane join a round that is long or whose lanes are all slow; return when to call again."""
        if self._round is None or not self._round.pending:
            return None
        prompt = any(lane.prompt(now) for lane in self._round.lanes)
        if not prompt or now - self._round.began >= LONG * len(self._round.lanes):
            self._join(self._round)
        return SLOW

    def close(self) -> None:
        for lane in self._lanes:
            if lane.task is not None:
                lane.task.cancel()
            lane.sessions.close()

    def _free(self) -> Lane | None:
        free = next((lane for lane in self._lanes if lane.free), None)
        if free is None and len(self._lanes) < _MOST:
            free = Lane(Sessions(self._conn_id, self._opener))
            self._lanes.append(free)
        return free

    def _join(self, joined: Round) -> None:
        lane = self._free()
        if lane is not None:
            joined.lanes.append(lane)
            lane.task = asyncio.create_task(self._work(lane, joined))
            lane.task.add_done_callback(lambda _: self._freed())

    async def _work(self, lane: Lane, joined: Round) -> None:
        loop = asyncio.get_running_loop()
        # Before the common listing: no verdict is newer than that.
        began = loop.time()

        def take() -> Iterator[Subject]:
            while True:
                try:
                    subject = joined.pending.popleft()
                except IndexError:
                    return
                lane.taken = subject.name, loop.time()
                yield subject

        def look(watch: VerdictSource) -> None:
            for name, verdict in watch.looks(take()):
                lane.taken = None
                loop.call_soon_threadsafe(self._deliver, name, verdict, began)

        try:
            await lane.sessions.ask(look)
        except Exception as error:
            self._fail(lane, joined, _failure(error, self._conn_id), began)
        finally:
            lane.taken = None

    def _fail(self, lane: Lane, joined: Round, verdict: Verdict, began: float) -> None:
        """Deliver no conclusion for all that this lane was to look at."""
        if lane.taken is not None:
            self._deliver(lane.taken[0], verdict, began)
        while joined.pending:
            self._deliver(joined.pending.popleft().name, verdict, began)


def _failure(error: Exception, conn_id: str) -> Verdict:
    if isinstance(error, KstreamError):
        return Verdict(None, str(error), shared=True)
    # A defect of ours in one round must not leave every task of this cluster waiting forever.
    log.error("A round over %s failed", conn_id, exc_info=error)
    return Verdict(None, f"this round failed: {error!r}", shared=True)
