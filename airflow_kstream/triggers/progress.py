"""Wait, in the triggerer, until streams have committed what had arrived by a moment: one round for all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context
from typing import Any

from airflow_kstream import settings
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.streams.progress import ProgressAnswer, ProgressCondition
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.look.progress import ProgressWatch
from airflow_kstream.triggers.awaiting import ClusterPollingTrigger, Poll
from airflow_kstream.triggers.shared import Opener, Sessions, shared

# Seconds in which those who ask join a round, and from the begin of one to that of the next.
_GATHERS, _PACE = 1.0, 15.0


@contextmanager
def _watch(cluster: Cluster) -> Iterator[ProgressWatch]:
    with open_session(cluster, cluster.watcher) as session:
        yield ProgressWatch(session, again=True, installation=settings.text("installation"))


class ProgressRounds:
    """The rounds of one cluster: each answers all that was asked since the one before, equal questions once."""

    def __init__(self, conn_id: str, opener: Opener[ProgressWatch] = _watch) -> None:
        self._sessions = Sessions(conn_id, opener)
        self._asked: dict[str, tuple[ProgressCondition, asyncio.Future[ProgressAnswer]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0

    async def answer(self, awaited: ProgressCondition) -> ProgressAnswer:
        """Return the answer of the next round. Raises as `ProgressWatch.answers` tells."""
        loop = asyncio.get_running_loop()
        _, answer = self._asked.setdefault(awaited.key, (awaited, loop.create_future()))
        if self._task is None or self._task.done():
            # A context of its own: its lines must not land in the log of the task that happened to be first.
            self._task = asyncio.create_task(self._rounds(), context=Context())
        # A waiter that ends must not cancel what others wait for.
        return await asyncio.shield(answer)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._sessions.close()

    async def _rounds(self) -> None:
        loop = asyncio.get_running_loop()
        while self._asked:
            await asyncio.sleep(max(self._next - loop.time(), _GATHERS))
            taken, self._asked = self._asked, {}
            self._next = loop.time() + _PACE
            answers = await self._answers([awaited for awaited, _ in taken.values()])
            for key, (_, waiting) in taken.items():
                _settle(waiting, answers[key])

    async def _answers(self, asked: list[ProgressCondition]) -> Mapping[str, ProgressAnswer | Exception]:
        try:
            return await self._sessions.ask(lambda watch: watch.answers(asked))
        except Exception as error:
            # Also a defect of ours: it must not leave every task of this cluster waiting for ever.
            return {awaited.key: error for awaited in asked}


def _settle(waiting: asyncio.Future[ProgressAnswer], answer: ProgressAnswer | Exception) -> None:
    if isinstance(answer, ProgressAnswer):
        waiting.set_result(answer)
        return
    waiting.set_exception(answer)
    # Nobody may wait for it any longer.
    waiting.exception()


class StreamProgressTrigger(ClusterPollingTrigger):
    """A trigger that reports that a stream has committed all that had arrived by a moment, and what proves it.

    All of one cluster in a triggerer are answered by common rounds, at most one each 15 seconds.

    Example::

        StreamProgressTrigger("prod", {"stream": "orders", "moment": "2026-03-01T06:00:00+00:00"}, every_seconds=60.0)

    :param cluster_conn_id: the `kstream` connection.
    :param awaited: the fields of a `ProgressCondition`.
    :param every_seconds: the pause between two polls.
    """

    @asynccontextmanager
    async def open_poll(self) -> AsyncIterator[Poll]:
        awaited, logged = ProgressCondition.from_mapping(self.awaited), ""
        async with shared(ProgressRounds, self.cluster_conn_id) as rounds:

            async def poll() -> dict[str, Any] | None:
                nonlocal logged
                answer = await rounds.answer(awaited)
                if answer.words != logged:
                    logged = answer.words
                    self.log.info("%s", logged)
                return answer.report() if answer.proof else None

            yield poll
