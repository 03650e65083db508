"""The writer of a triggerer's looks. Nothing waits for it, and what it can't write fails no look.

Looks come as fast as they may; `policy.states.due` decides which of them are written, and when. The store may be slow,
away or raise: then the next try comes later, and looks go on. An asset that no DAG names has no rows: Airflow answers
404, which is remembered for a while, and once a DAG names it, everything is written again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.stream_state import TaskIds
from airflow_kstream.notifications import ledgers
from airflow_kstream.policy.states.due import (
    FORGOTTEN,
    LONGEST_PAUSE,
    Key,
    Kind,
    Row,
    Subject,
    moment_of,
    next_due,
    next_rows,
    rewritten_after,
)

log = logging.getLogger(__name__)

# Seconds: for one row, before the next try where the store fails, and before a row that it refused, or an asset without
# a DAG, is tried again.
_PATIENCE, _PAUSE, _REFUSED, _NOT_NAMED = 30.0, 5.0, 60.0, 600.0
_NOT_FOUND = 404
# Changes of a report are merged into what its task pushed.
Content = Callable[[], Mapping[str, Any]]
Update = Callable[[object], Mapping[str, Any]]


@dataclass(frozen=True)
class RowContent:
    """The content of a row, as a look saw it. `mark` differs if the content changed, `epoch` is its generation."""

    mark: Hashable
    epoch: int
    content: Content


@dataclass(frozen=True)
class ReportUpdate:
    """An update of the report that a task pushed."""

    by: TaskIds
    update: Update


class Recorder:
    """The rows of all streams that this process watches. To be used from one event loop."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}
        self._contents: dict[Key, Content | ReportUpdate] = {}
        self._held: dict[Subject, float] = {}
        # Those whose last row could not be written.
        self._refused: set[Subject] = set()
        self._changed = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None
        # The moment that the rounds wait for.
        self._awaited = 0.0
        self._fails, self._pause = False, 0.0
        self._complaints: set[str] = set()

    @property
    def round_seconds(self) -> float:
        """Return how long it takes to write each stream's rows again, where nothing changed."""
        return rewritten_after(self.streams)

    @property
    def streams(self) -> int:
        """Return of how many streams it writes rows."""
        return len(self._rows) // len(Kind)

    def forget(self, subject: Subject) -> None:
        """Forget what was written of a stream: its task may have written something else since."""
        for kind in Kind:
            self._drop((subject, kind))

    def saw(self, subject: Subject, kind: Kind, look: RowContent) -> None:
        """Take what a look saw. Never blocks."""
        self._take((subject, kind), look.mark, look.epoch, look.content)

    def report(self, subject: Subject, mark: Hashable, epoch: int, update: ReportUpdate) -> None:
        """Take what a look has to add to its task's report. Never blocks."""
        self._take((subject, Kind.REPORT), mark, epoch, update)

    def _take(self, key: Key, mark: Hashable, epoch: int, content: Content | ReportUpdate) -> None:
        now = asyncio.get_running_loop().time()
        row = self._rows.get(key, Row(key[1], mark, epoch, now, now)).saw(mark, epoch, now)
        self._rows[key], self._contents[key] = row, content
        if (moment := moment_of(key, row, self._held)) is not None and moment < self._awaited:
            self._changed.set()
        if self._rounds is None or self._rounds.done():
            # A context of its own: its lines must not land in the log of the task that happened to be first.
            self._rounds = asyncio.create_task(self._write_what_is_due(), context=Context())

    async def _write_what_is_due(self) -> None:
        """Write a second's rows in each round, and end when there are none to come."""
        loop = asyncio.get_running_loop()
        while (due := next_due(self._rows, self._held)) is not None:
            began, self._awaited = loop.time(), due
            if due > began:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(due - began):
                        await self._changed.wait()
                continue
            self._tidy(began)
            for key in next_rows(self._rows, self._held, began, self._refused):
                if not await self._written(key):
                    break
            await asyncio.sleep(max(self._pause, began + 1.0 - loop.time()))

    def _tidy(self, now: float) -> None:
        self._held = {subject: until for subject, until in self._held.items() if until > now}
        for key in [key for key, row in self._rows.items() if now - row.seen > FORGOTTEN]:
            self._drop(key)
        if self._refused:
            self._refused &= {subject for subject, _ in self._rows}

    def _drop(self, key: Key) -> None:
        self._rows.pop(key, None)
        self._contents.pop(key, None)

    async def _written(self, key: Key) -> bool:
        """Write one row; return whether the store takes more."""
        (subject, kind), began = key, asyncio.get_running_loop().time()
        row, content = self._rows.get(key), self._contents.get(key)
        # The stream's task may just have ended, or the asset may just have turned out to have no DAG.
        if row is None or content is None or (kind is not Kind.REPORT and self._held.get(subject, 0.0) > began):
            return True
        try:
            async with asyncio.timeout(_PATIENCE):
                await (_update(content) if isinstance(content, ReportUpdate) else _put(key, content))
        except Exception as error:
            return self._failed(key, row, error)
        self._fails, self._pause = False, 0.0
        if kind is not Kind.REPORT:
            self._refused.discard(subject)
        self._wrote(key, row)
        return True

    def _wrote(self, key: Key, row: Row) -> None:
        if key in self._rows:
            self._rows[key] = self._rows[key].wrote(row, asyncio.get_running_loop().time())

    def _failed(self, key: Key, row: Row, error: Exception) -> bool:
        subject, kind = key
        if kind is Kind.REPORT:
            # Its run may be gone; the next change is the next try.
            self._complain(error)
            self._wrote(key, row)
            return True
        if is_not_named(error):
            self._held[subject] = asyncio.get_running_loop().time() + _NOT_NAMED
            of_asset = [each for each in self._rows if each[0] == subject and each[1] is not Kind.REPORT]
            self._rows |= {each: self._rows[each].lost() for each in of_asset}
            return True
        self._complain(error)
        if self._fails:
            self._pause = min(max(2 * self._pause, _PAUSE), LONGEST_PAUSE)
        # The store may refuse this one alone: others go first, and nothing pauses unless the next one fails, too.
        self._fails = True
        self._refused.add(subject)
        self._held[subject] = asyncio.get_running_loop().time() + _REFUSED
        return False

    def _complain(self, error: Exception) -> None:
        """Log each kind of failure once: a fleet has a thousand of them."""
        if (cause := type(error).__name__) not in self._complaints:
            log.warning("What was seen of streams can't be stored, so pages may show it late: %r", error)
        self._complaints.add(cause)


def is_not_named(error: Exception) -> bool:
    """Return whether the store refused a row because no DAG names the asset."""
    detail = getattr(getattr(error, "error", None), "detail", None)
    return isinstance(detail, Mapping) and detail.get("status_code") == _NOT_FOUND


async def _put(key: Key, content: Content) -> None:
    subject, kind = key
    await ledgers.put(asset_uri(*subject), kind.value, dict(content()))


async def _update(report: ReportUpdate) -> None:
    by = report.by
    pushed = await get_report(by)
    await put_report(by, dict(report.update(pushed)))


async def get_report(by: TaskIds) -> Any:
    """Read the report of a task, None if it pushed none. Raises whatever Airflow raises."""
    # Importing it takes as long as a worker's start.
    from airflow.sdk.execution_time.xcom import XCom

    ids = {"dag_id": by.dag, "run_id": by.run, "task_id": by.task, "map_index": by.map_index}
    return await XCom.aget_one(key=Kind.REPORT.value, **ids)


async def put_report(by: TaskIds, report: Mapping[str, Any]) -> None:
    """Write the report of a task, which may be deferred. Raises whatever Airflow raises."""
    from airflow.sdk.execution_time.xcom import XCom

    ids = {"dag_id": by.dag, "run_id": by.run, "task_id": by.task, "map_index": by.map_index}
    await XCom.aset(Kind.REPORT.value, dict(report), **ids)


class _Process:
    """The recorder of this process, for the loop that runs in it."""

    loop: asyncio.AbstractEventLoop | None = None
    recorder: Recorder


_process = _Process()


def recorder() -> Recorder:
    """Return the recorder of this process and its running loop."""
    if _process.loop is not asyncio.get_running_loop():
        _process.loop, _process.recorder = asyncio.get_running_loop(), Recorder()
    return _process.recorder
