"""What an earlier triggerer saw of a stream: one that was killed leaves nothing in its triggers' rows.

Anybody who may edit assets can write that, so nothing but positions is read of it, and no wait is decided by one.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from types import TracebackType
from typing import Any, Self

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_fixed

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.notifications import ledgers
from airflow_kstream.policy.states.due import Kind, Subject
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.states.values import reached_of

log = logging.getLogger(__name__)

# Seconds. A triggerer that starts reads the rows of all its streams, one after the other, each within 50 ms.
_PATIENCE = 60.0
# Seconds before what could not be read is read again.
_PAUSE = 60.0


class Recall:
    """The furthest positions that were seen of a stream, read beside its first looks; a context manager within which it
    reads them.

    What is stored is up to half an hour old. No look waits for it, but what wakes the task does: the task takes an
    older copy of the checkpoint for what it was.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._reading: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._stored: ReachedPositions | None = None

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self._read(), context=Context())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reading is not None:
            self._reading.cancel()

    @property
    def done(self) -> bool:
        return self._stored is not None

    @property
    def reached(self) -> ReachedPositions:
        """Return what is known by now."""
        return self._stored or NOWHERE

    async def awaited(self) -> ReachedPositions:
        """Return what was stored: within a minute, and as if there were nothing where it can't be read."""
        await self._tried.wait()
        return self.reached

    async def _read(self) -> None:
        """Read what is stored, again after each failure; that is nothing if no DAG names the stream's asset."""
        reads = AsyncRetrying(
            retry=retry_if_exception(_may_be_read_later), wait=wait_fixed(_PAUSE), before_sleep=self._failed
        )
        try:
            row: object = await reads(self._row)
        except Exception:
            row = None
        self._stored = reached_of(row)
        self._tried.set()

    async def _row(self) -> Any:
        async with asyncio.timeout(_PATIENCE):
            return await ledgers.get(asset_uri(*self._subject), Kind.DETAIL.value)

    def _failed(self, attempt: RetryCallState) -> None:
        if attempt.outcome is not None and not self._tried.is_set():
            log.info("What was stored of %s can't be read: %r", "/".join(self._subject), attempt.outcome.exception())
        self._tried.set()


def _may_be_read_later(error: BaseException) -> bool:
    return isinstance(error, Exception) and not is_not_named(error)
