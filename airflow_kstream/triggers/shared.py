"""What triggers that look at a cluster have in common: one set of sessions per connection, and how they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from contextvars import copy_context
from typing import Any, NoReturn, TypeVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import TriggerEvent

from airflow_kstream.hooks.cluster import fields_of
from airflow_kstream.model.errors import CredentialError, KstreamError, NotFound
from airflow_kstream.supervise.access import Access, open_access
from airflow_kstream.supervise.connect import ConnectionFields, cluster_of

T = TypeVar("T")


class SharedAccess:
    """The sessions of one connection in a triggerer process, in a thread of their own, however many triggers ask.

    Each SPNEGO exchange takes its credentials anew, from the keytab or from the cache as it is then: no question
    depends on a ticket of an earlier one. After a failure the sessions are opened again, from the connection as it is
    then; a refusal counts only when it met such new ones.
    """

    def __init__(self, conn_id: str) -> None:
        self._conn_id = conn_id
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"kstream-{conn_id}")
        self._opened = ExitStack()
        self._fields: ConnectionFields | None = None
        self._access: Access | None = None
        self.users = 0

    async def ask(self, question: Callable[[Access], T]) -> T:
        """Run the question in the sessions' thread; the triggerer's loop never waits for a server."""
        were_open = self._access is not None
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

    async def _ask(self, question: Callable[[Access], T]) -> T:
        fields = None if self._access else fields_of(await BaseHook.aget_connection(self._conn_id))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, copy_context().run, self._answer, question, fields)

    def _answer(self, question: Callable[[Access], T], fields: ConnectionFields | None) -> T:
        self._fields = fields or self._fields
        try:
            return question(self._access or self._open())
        except NotFound:
            # An answer like another; the sessions are in order.
            raise
        except Exception:
            self._close()
            raise

    def _open(self) -> Access:
        assert self._fields
        cluster = self._opened.enter_context(cluster_of(self._conn_id, self._fields))
        self._access = self._opened.enter_context(open_access(cluster, cluster.watcher))
        return self._access

    def _close(self) -> None:
        self._access = None
        self._opened.close()


_shared: dict[str, SharedAccess] = {}


@asynccontextmanager
async def shared_access(conn_id: str) -> AsyncIterator[SharedAccess]:
    """The process's sessions of this connection; the last user closes them."""
    access = _shared.setdefault(conn_id, SharedAccess(conn_id))
    access.users += 1
    try:
        yield access
    finally:
        access.users -= 1
        if access.users == 0:
            _shared.pop(conn_id, None)
            access.close()


def may_pass(error: KstreamError) -> bool:
    """Whether to go on waiting: a server can come back, and a file can come to be."""
    return error.retryable or isinstance(error, NotFound)


def error_event(error: KstreamError) -> TriggerEvent:
    """For `raise_error` on the worker. A ticket that is renewed later lets a later try of the task succeed."""
    said = {name: getattr(error, name) for name in ("message", "tried", "server", "principal")}
    final = not isinstance(error, CredentialError)
    return TriggerEvent({"error": said, "final": final})  # type: ignore[no-untyped-call]


def raise_error(event: dict[str, Any]) -> NoReturn:
    """What the trigger met; AirflowFailException where a retry can't help."""
    if event["final"]:
        raise AirflowFailException(str(KstreamError(**event["error"])))
    raise CredentialError(**event["error"])


def with_remedy(error: KstreamError) -> KstreamError:
    """A refused credential, with what a person can do about it."""
    if not isinstance(error, CredentialError):
        return error
    message = (
        f"{error.message.rstrip('.')}; renew the principal's ticket (kstream tickets renew), or get its new keytab"
    )
    return CredentialError(message, tried=error.tried, server=error.server, principal=error.principal)
