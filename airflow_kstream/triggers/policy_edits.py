"""Edits of a stream's policies, as its trigger learns of them: its row in Airflow's database keeps the old ones."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.persisted_spec import read_policies
from airflow_kstream.model.policy_edit import PolicyEdit, mark_of
from airflow_kstream.model.stream_policies import WatchPolicy
from airflow_kstream.notifications import ledgers
from airflow_kstream.policy.states.due import Subject
from airflow_kstream.states.policy_edits import EDIT, MARKS, Marks
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.triggers.memory import Memory

log = logging.getLogger(__name__)

# Seconds between two readings by one trigger, and after one that failed. Each waits for half of that or more, so that a
# fleet's are spread.
_EVERY, _RETRY = 900.0, 120.0
# Seconds for which one reading of a cluster's marks serves all triggers of this process, and that it may take.
_FRESH, _PATIENCE = 60.0, 60.0


@dataclass(frozen=True)
class Rules:
    """The policies to look by, None for the claim's, and what they say of the looks themselves, in seconds."""

    policies: Mapping[str, Any] | None
    every: float
    blind_after: float


class _Process:
    """The marks that this process has read of each cluster, and when, for the loop that runs in it."""

    loop: asyncio.AbstractEventLoop | None = None
    readings: dict[str, tuple[float, asyncio.Task[Marks]]]
    complaints: set[str]

    def here(self) -> Self:
        if self.loop is not asyncio.get_running_loop():
            self.loop, self.readings, self.complaints = asyncio.get_running_loop(), {}, set()
        return self

    async def marks(self, cluster: str) -> Marks:
        """Return the marks of a cluster's streams, at most a minute old. Raises whatever Airflow raises."""
        now = asyncio.get_running_loop().time()
        read_at, reading = self.readings.get(cluster, (now - _FRESH, None))
        if reading is None or now - read_at >= _FRESH:
            reading = asyncio.create_task(_marks(cluster), context=Context())
            self.readings[cluster] = now, reading
        return await asyncio.shield(reading)

    def complain(self, subject: Subject, error: Exception) -> None:
        """Log each kind of failure once: a fleet has a thousand of them."""
        if (cause := type(error).__name__) not in self.complaints:
            log.warning("Whether policies of %s were edited can't be read: %r", "/".join(subject), error)
        self.complaints.add(cause)


_process = _Process()


class PolicyEdits:
    """The policies of one stream, which follow their edits; a context manager within which it reads them.

    No look waits for it, and what can't be read changes nothing. A restart that is due waits for the first reading, a
    minute at most: it may be due only by the policies with which the task deferred, months ago.
    """

    def __init__(self, subject: Subject, given: Rules, memory: Memory) -> None:
        self.edit, self.rules = memory.edit, given
        self._subject, self._given, self._declared = subject, given, memory.declared
        self._known = None if given.policies is None else read_policies(given.policies)
        self._following: asyncio.Task[None] | None = None
        self._first = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._following = asyncio.create_task(self._follow(), context=Context())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._following is not None:
            self._following.cancel()

    async def changed(self, rules: Rules) -> bool:
        """Return whether other rules hold than these; the first time it waits until that is known, or for a minute."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._first.wait()
        return rules != self.rules

    async def _follow(self) -> None:
        while True:
            pause = _EVERY
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._read()
            except Exception as error:
                if not is_not_named(error):
                    pause = _RETRY
                    _process.here().complain(self._subject, error)
            self._first.set()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _read(self) -> None:
        cluster, stream = self._subject
        mark = (await _process.here().marks(cluster)).streams.get(stream)
        if mark is None:
            self.edit = None
        elif mark != self._mark():
            self.edit = PolicyEdit.from_json(await ledgers.get(asset_uri(*self._subject), EDIT)) or self.edit
        self.rules = self._rules()

    def _mark(self) -> str | None:
        """Return the mark of what is known: without an edit, of what the task gave."""
        if self.edit is not None:
            return self.edit.mark
        return None if self._known is None else mark_of(self._known)

    def _rules(self) -> Rules:
        if self.edit is None or not self.edit.replaces(self._known, self._declared):
            return self._given
        watch: WatchPolicy = read_policies(self.edit.policies)["watch"]
        return Rules(self.edit.policies, watch.every.total_seconds(), watch.blind_after.total_seconds())


async def _marks(cluster: str) -> Marks:
    async with asyncio.timeout(_PATIENCE):
        return Marks.from_json(await ledgers.get(asset_uri(cluster), MARKS))
