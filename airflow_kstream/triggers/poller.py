"""One poller per cluster connection in a triggerer process, however many tasks wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from contextvars import Context

from airflow.sdk import BaseHook

from airflow_kstream.hooks.cluster import fields_of
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.watch import Verdict, Watch

log = logging.getLogger(__name__)


class ClusterPoller:
    """Runs rounds in a thread and hands each waiting trigger its stream's verdict.

    Everything that blocks (SPNEGO, HTTP) is in that one thread, so the triggerer's loop never waits for a server.
    """

    def __init__(self, fields: ConnectionFields, conn_id: str) -> None:
        self._fields = fields
        self._conn_id = conn_id
        self._waiting: dict[str, list[asyncio.Future[Verdict]]] = {}
        self._every = float("inf")
        self._task: asyncio.Task[None] | None = None
        self.users = 0

    async def next_verdict(self, stream: str, every: float) -> Verdict:
        """The stream's verdict from the next round that begins after now."""
        self._every = min(self._every, every)
        future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(stream, []).append(future)
        if self._task is None or self._task.done():
            # A context of its own: what it logs must not land in the log of the task that happened to be first.
            self._task = asyncio.create_task(self._rounds(), context=Context())
        return await future

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _rounds(self) -> None:
        with ExitStack() as opened:
            watch: Watch | None = None
            verdicts: Mapping[str, Verdict]
            while True:
                await asyncio.sleep(self._every)
                waiting, self._waiting = self._waiting, {}
                try:
                    if watch is None:
                        watch = await asyncio.to_thread(self._open, opened)
                    verdicts = await asyncio.to_thread(watch.round, tuple(waiting))
                except KstreamError as error:
                    verdicts = {stream: Verdict(None, str(error)) for stream in waiting}
                except Exception as error:
                    # A defect of ours in one round must not leave every task of this cluster waiting for ever.
                    log.exception("A round over %s failed", self._conn_id)
                    verdicts = {stream: Verdict(None, f"this round failed: {error!r}") for stream in waiting}
                _deliver(waiting, verdicts)

    def _open(self, opened: ExitStack) -> Watch:
        cluster = opened.enter_context(cluster_of(self._conn_id, self._fields))
        return Watch(opened.enter_context(open_session(cluster, cluster.watcher)))


def _deliver(waiting: dict[str, list[asyncio.Future[Verdict]]], verdicts: Mapping[str, Verdict]) -> None:
    for stream, futures in waiting.items():
        for future in futures:
            if not future.done():
                future.set_result(verdicts[stream])


_pollers: dict[tuple[str, str], ClusterPoller] = {}


@asynccontextmanager
async def shared_poller(conn_id: str) -> AsyncIterator[ClusterPoller]:
    """The process's poller for this connection as it is now; the last user closes it.

    Whoever comes after an edit of the connection gets another poller, while those who wait keep theirs.
    """
    fields = fields_of(await BaseHook.aget_connection(conn_id))
    key = conn_id, fields.fingerprint()
    poller = _pollers.setdefault(key, ClusterPoller(fields, conn_id))
    poller.users += 1
    try:
        yield poller
    finally:
        poller.users -= 1
        if poller.users == 0:
            _pollers.pop(key, None)
            await poller.close()
