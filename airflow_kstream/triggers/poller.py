"""Rounds over the streams that triggers wait for: one request to the ResourceManager for all that are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from typing import Protocol

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.watch import Verdict, Watch
from airflow_kstream.triggers.shared import Opener, Sessions

log = logging.getLogger(__name__)


class Rounds(Protocol):
    """A source of a verdict for each stream, such as Watch."""

    def round(self, names: Collection[str]) -> Mapping[str, Verdict]: ...


@contextmanager
def _watch(cluster: Cluster) -> Iterator[Rounds]:
    with open_session(cluster, cluster.watcher) as session:
        yield Watch(session)


@dataclass(frozen=True)
class _Waiter:
    """A trigger that wants its stream's verdict every `every` seconds; it arrived at `since`, by the loop's clock."""

    stream: str
    every: float
    since: float
    verdict: asyncio.Future[Verdict] = field(compare=False)

    @property
    def due(self) -> float:
        return self.since + self.every

    def may_come_along(self, now: float) -> bool:
        """Return whether at least half of `every` has passed.

        That puts triggers of the same pace into one round, and spares slow ones the pace of fast ones.
        """
        return now >= self.since + self.every / 2


class ClusterPoller:
    """A poller that hands each waiting trigger its stream's verdict, at that trigger's pace or up to twice as often.

    Everything that blocks (SPNEGO, HTTP) runs in the sessions' one thread. So the triggerer's loop never waits for a
    server, and a cluster whose servers do not respond delays no other.
    """

    def __init__(self, conn_id: str, opener: Opener[Rounds] = _watch) -> None:
        self._conn_id = conn_id
        self._sessions = Sessions(conn_id, opener)
        self._waiting: list[_Waiter] = []
        self._arrival = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def next_verdict(self, stream: str, every: float) -> Verdict:
        """Return the stream's verdict from a round that begins after now."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(stream, every, loop.time(), loop.create_future())
        self._waiting.append(waiter)
        self._arrival.set()
        if self._task is None or self._task.done():
            # A context of its own: its lines must not land in the log of the task that happened to be first.
            self._task = asyncio.create_task(self._rounds(), context=Context())
        return await waiter.verdict

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._sessions.close()

    async def _rounds(self) -> None:
        while True:
            await self._until_somebody_is_due()
            now = asyncio.get_running_loop().time()
            due = [waiter for waiter in self._waiting if waiter.may_come_along(now)]
            self._waiting = [waiter for waiter in self._waiting if not waiter.may_come_along(now)]
            verdicts = await self._round(tuple({waiter.stream: None for waiter in due}))
            for waiter in due:
                if not waiter.verdict.done():
                    waiter.verdict.set_result(verdicts[waiter.stream])

    async def _until_somebody_is_due(self) -> None:
        while True:
            self._arrival.clear()
            # A trigger that has ended has cancelled its future.
            self._waiting = [waiter for waiter in self._waiting if not waiter.verdict.done()]
            first = min((waiter.due for waiter in self._waiting), default=None)
            left = None if first is None else first - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrival.wait(), left)

    async def _round(self, streams: tuple[str, ...]) -> Mapping[str, Verdict]:
        try:
            return await self._sessions.ask(lambda watch: watch.round(streams))
        except KstreamError as error:
            return {stream: Verdict(None, str(error)) for stream in streams}
        except Exception as error:
            # A defect of ours in one round must not leave every task of this cluster waiting forever.
            log.exception("A round over %s failed", self._conn_id)
            return {stream: Verdict(None, f"this round failed: {error!r}") for stream in streams}
