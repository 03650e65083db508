"""Sessions that triggers share to poll a cluster: they run in one thread and follow edits of the connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from airflow.sdk import BaseHook

from airflow_kstream.hooks.connection import fields_of
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, NotFound, Unavailable
from airflow_kstream.notifications.notifier import learn, unread
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session

log = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT")
SessionsT = TypeVar("SessionsT")
SharedT = TypeVar("SharedT", bound="Closable")
Opener = Callable[[Cluster], AbstractContextManager[SessionsT]]


class Closable(Protocol):
    """A thing that can be shared and closed."""

    def close(self) -> None:
        """Close it without waiting for anything."""


class Sessions(Generic[SessionsT]):
    """The sessions that `opener` opens on the cluster of a connection, for questions from the triggerer's loop.

    Each question reads the connection again, so a trigger that waits for days sees every edit. An edit or a failure
    opens the sessions again; a refusal counts only if it came from sessions opened for that question. Each SPNEGO
    exchange reads its credentials again, from the keytab or the cache: no question depends on an earlier one's ticket.

    A connection that can't be read is taken to be as before, because Airflow does not tell one that was deleted from
    one that its API server can't return at the moment. So a deletion ends no wait: the watch goes on with the last
    fields until somebody ends it, and a connection that is made again counts from the next question on. A triggerer
    that starts after the deletion has no last fields: each question then raises Unavailable, and the wait goes on.
    """

    def __init__(self, conn_id: str, opener: Opener[SessionsT]) -> None:
        self._conn_id = conn_id
        self._opener = opener
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"kstream-{conn_id}")
        self._opened = ExitStack()
        self._fields: ConnectionFields | None = None
        self._sessions: SessionsT | None = None
        self._complaint = ""

    async def ask(self, question: Callable[[SessionsT], AnswerT]) -> AnswerT:
        """Run the question in the sessions' thread, so that the triggerer's loop never waits for a server.

        Raises Unavailable: when the connection was never readable. Raises InvalidInput: when a field of it is wrong.
        """
        were_open = self._sessions is not None
        try:
            return await self._ask(question)
        except KstreamError as error:
            if error.retryable or not were_open:
                raise
        return await self._ask(question)

    def close(self) -> None:
        """Close the sessions after the question in progress, without waiting for it."""
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    async def _ask(self, question: Callable[[SessionsT], AnswerT]) -> AnswerT:
        fields = await self._connection()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, copy_context().run, self._answer, question, fields)

    async def _connection(self) -> ConnectionFields:
        unread(self._conn_id)
        try:
            connection = await BaseHook.aget_connection(self._conn_id)
        except Exception as error:
            if self._fields is None:
                raise Unavailable(f"it can't be read: {error}", tried=f"read connection {self._conn_id}") from error
            if str(error) != self._complaint:
                log.warning("Connection %s can't be read; it is taken to be as before: %r", self._conn_id, error)
            self._complaint = str(error)
            return self._fields
        self._complaint = ""
        fields = fields_of(connection)
        learn(self._conn_id, fields.allow)
        return fields

    def _answer(self, question: Callable[[SessionsT], AnswerT], fields: ConnectionFields) -> AnswerT:
        if self._fields is None or fields.fingerprint() != self._fields.fingerprint():
            self._close()
            self._fields = fields
        try:
            return question(self._sessions or self._open(fields))
        except NotFound:
            # A normal answer: the sessions still work.
            raise
        except Exception:
            self._close()
            raise

    def _open(self, fields: ConnectionFields) -> SessionsT:
        cluster = self._opened.enter_context(cluster_of(self._conn_id, fields))
        self._sessions = self._opened.enter_context(self._opener(cluster))
        return self._sessions

    def _close(self) -> None:
        self._sessions = None
        self._opened.close()


@asynccontextmanager
async def own_sessions(conn_id: str, opener: Opener[SessionsT]) -> AsyncIterator[Sessions[SessionsT]]:
    """Yield sessions that nothing else uses."""
    sessions = Sessions(conn_id, opener)
    try:
        yield sessions
    finally:
        sessions.close()


@dataclass
class _InUse:
    thing: Closable
    users: int = 0


_in_use: dict[tuple[Callable[[str], Closable], str], _InUse] = {}


@asynccontextmanager
async def shared(make: Callable[[str], SharedT], conn_id: str) -> AsyncIterator[SharedT]:
    """Yield the one thing in this process that `make` makes for this connection; its last user closes it."""
    key = make, conn_id
    if key not in _in_use:
        _in_use[key] = _InUse(make(conn_id))
    entry = _in_use[key]
    entry.users += 1
    try:
        yield cast("SharedT", entry.thing)
    finally:
        entry.users -= 1
        if entry.users == 0:
            del _in_use[key]
            entry.thing.close()


def cluster_sessions(conn_id: str) -> Sessions[ClusterSession]:
    """Make sessions as the connection's watcher."""
    return Sessions(conn_id, lambda cluster: open_session(cluster, cluster.watcher))
