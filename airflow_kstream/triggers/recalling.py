"""What an earlier triggerer saw of a stream: one that was killed leaves nothing in its triggers' rows."""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_fixed

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.looks import NOWHERE, Reached
from airflow_kstream.model.stream_state import StreamState
from airflow_kstream.notifications import ledgers
from airflow_kstream.policy.states.due import Kind, Subject
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.states.values import reached_of

log = logging.getLogger(__name__)

# Seconds. A triggerer that starts reads the rows of all its streams, one after the other, each within 50 ms.
_PATIENCE = 60.0
# Seconds before what could not be read is read again.
_PAUSE = 60.0


@dataclass(frozen=True)
class Stored:
    """The furthest positions that were seen of a stream, the time of the last conclusion, and the plan it came to.

    `seen` is None if nothing is stored.
    """

    reached: Reached = NOWHERE
    seen: datetime | None = None
    plan: datetime | None = None


_NOTHING = Stored()


class Recall:
    """The stored state of a stream, read beside its first looks; a context manager within which it reads that.

    What is stored is up to half an hour old. No look waits for it, but what wakes the task does: the task takes an
    older copy of the checkpoint for what it was.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._reading: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._stored: Stored | None = None

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
    def stored(self) -> Stored:
        """Return what is known by now."""
        return self._stored or _NOTHING

    async def awaited(self) -> Stored:
        """Return what was stored: within a minute, and as if there were nothing where it can't be read."""
        await self._tried.wait()
        return self.stored

    async def _read(self) -> None:
        """Read what is stored, again after each failure; that is nothing if no DAG names the stream's asset."""
        reads = AsyncRetrying(
            retry=retry_if_exception(_may_be_read_later), wait=wait_fixed(_PAUSE), before_sleep=self._failed
        )
        try:
            row: object = await reads(self._row)
        except Exception:
            row = None
        state = StreamState.from_json(row)
        self._stored = Stored(reached_of(row), state.seen, state.plan) if state else Stored(reached_of(row))
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
