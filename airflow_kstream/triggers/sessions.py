"""The sessions with which triggers look at a cluster: in a thread of their own, opened anew after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from contextvars import copy_context
from typing import Generic, TypeVar

from airflow.sdk import BaseHook

from airflow_kstream.hooks.cluster import fields_of
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session

T = TypeVar("T")
S = TypeVar("S")
Opener = Callable[[Cluster], AbstractContextManager[S]]


class Sessions(Generic[S]):
    """What `opener` opens on the cluster of a connection, for questions from the triggerer's loop.

    Each SPNEGO exchange takes its credentials anew, from the keytab or from the cache as it is then: no question
    depends on a ticket of an earlier one. After a failure the sessions are opened again, from the connection as it is
    then; a refusal counts only when it met such new ones.
    """

    def __init__(self, conn_id: str, opener: Opener[S]) -> None:
        self._conn_id = conn_id
        self._opener = opener
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"kstream-{conn_id}")
        self._opened = ExitStack()
        self._fields: ConnectionFields | None = None
        self._sessions: S | None = None

    async def ask(self, question: Callable[[S], T]) -> T:
        """Run the question in the sessions' thread; the triggerer's loop never waits for a server."""
        were_open = self._sessions is not None
        try:
            return await self._ask(question)
        except KstreamError as error:
            if error.retryable or not were_open:
                raise
        return await self._ask(question)

    def close(self) -> None:
        """After the question that is under way."""
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    async def _ask(self, question: Callable[[S], T]) -> T:
        fields = None if self._sessions else fields_of(await BaseHook.aget_connection(self._conn_id))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, copy_context().run, self._answer, question, fields)

    def _answer(self, question: Callable[[S], T], fields: ConnectionFields | None) -> T:
        self._fields = fields or self._fields
        try:
            return question(self._sessions or self._open())
        except NotFound:
            # An answer like another; the sessions are in order.
            raise
        except Exception:
            self._close()
            raise

    def _open(self) -> S:
        assert self._fields
        cluster = self._opened.enter_context(cluster_of(self._conn_id, self._fields))
        self._sessions = self._opened.enter_context(self._opener(cluster))
        return self._sessions

    def _close(self) -> None:
        self._sessions = None
        self._opened.close()


@asynccontextmanager
async def own_sessions(conn_id: str, opener: Opener[S]) -> AsyncIterator[Sessions[S]]:
    """Sessions that nobody else uses."""
    sessions = Sessions(conn_id, opener)
    try:
        yield sessions
    finally:
        sessions.close()


class _Shared(Sessions[ClusterSession]):
    users = 0


_shared: dict[str, _Shared] = {}


@asynccontextmanager
async def shared_sessions(conn_id: str) -> AsyncIterator[Sessions[ClusterSession]]:
    """The triggerer's sessions of this connection, however many triggers ask; the last user closes them."""
    sessions = _shared.setdefault(conn_id, _Shared(conn_id, lambda cluster: open_session(cluster, cluster.watcher)))
    sessions.users += 1
    try:
        yield sessions
    finally:
        sessions.users -= 1
        if sessions.users == 0:
            _shared.pop(conn_id, None)
            sessions.close()
