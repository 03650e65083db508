"""What an earlier triggerer saw of a stream: one that was killed leaves nothing in its triggers' rows."""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

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


@dataclass(frozen=True)
class Stored:
    """The furthest positions that were seen of a stream, and when it was last seen, None if nothing is stored."""

    reached: Reached = NOWHERE
    seen: datetime | None = None


_NOTHING = Stored()


class Recall:
    """The stored state of a stream, read beside its first looks; a context manager within which it reads that.

    What is stored is up to half an hour old. No look waits for it, but what wakes the task does: the task takes an
    older copy of the checkpoint for what it was.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._reading: asyncio.Task[Stored] | None = None

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
        return self._reading is not None and self._reading.done()

    @property
    def stored(self) -> Stored:
        """Return what is known by now."""
        return self._reading.result() if self._reading is not None and self._reading.done() else _NOTHING

    async def awaited(self) -> Stored:
        """Return what was stored; within a minute, or as if there were nothing."""
        return _NOTHING if self._reading is None else await asyncio.shield(self._reading)

    async def _read(self) -> Stored:
        try:
            async with asyncio.timeout(_PATIENCE):
                row = await ledgers.get(asset_uri(*self._subject), Kind.DETAIL.value)
            state = StreamState.from_json(row)
            return Stored(reached_of(row), state.seen if state else None)
        except Exception as error:
            if not is_not_named(error):
                log.info("What was stored of %s can't be read: %r", "/".join(self._subject), error)
        return _NOTHING
