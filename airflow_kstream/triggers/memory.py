"""What a watch remembers: handed on from the worker to the trigger and from one trigger to the next, and kept in rows
in case a triggerer is killed.

Anybody who may edit assets can write such a row. So nothing but positions is read of it, and no wait is decided by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_fixed

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.clusters.hdfs_health import SafeMode
from airflow_kstream.model.printable import storable
from airflow_kstream.model.streams.declarations import PolicyEdit
from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Phase, Report
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.notifications import ledgers
from airflow_kstream.policy.states.due import Kind, Subject
from airflow_kstream.policy.streams.ends.after_end import refused, tells_safe_mode
from airflow_kstream.policy.streams.pulse.heartbeat import CONFIRMS
from airflow_kstream.policy.streams.restart.blocked import BlockedRestart
from airflow_kstream.policy.streams.restart.looks import furthest
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.states.values import reached_of

log = logging.getLogger(__name__)

# Seconds. A triggerer that starts reads the rows of all its streams, one after the other, each within 50 ms.
_PATIENCE = 60.0
# Seconds before what could not be read is read again.
_PAUSE = 60.0


@dataclass(frozen=True)
class Blindness:
    """A stream that was not seen: since when, and how often its task was woken for that."""

    since: datetime | None = None
    wakings: int = 0


@dataclass(frozen=True)
class SuccessorDoubt:
    """The reason why nothing can follow a generation: only the task sees who owns a checkpoint, or that the stream is
    declared twice."""

    doubt: str = ""
    doubted: int = 0
    """The generation; 0 is the running one."""


@dataclass(frozen=True)
class StallMemory:
    """The batches of a stream that hang."""

    stall: Stall | None = None
    """The one that the task is to examine."""
    examined: Stall | None = None
    """The one that it examined last."""
    examine_at: datetime | None = None
    """The time before which it is not woken again for that one."""


@dataclass(frozen=True)
class DeclarationMemory:
    """The declaration as the task read it."""

    declared: datetime | None = None
    """When it looked, and read its declaration."""
    edit: PolicyEdit | None = None
    """The last edit of the policies that the trigger read."""


@dataclass(frozen=True)
class Memory:
    """The last known facts about a stream. One of an earlier version carries fewer, one of a later version more."""

    plan: datetime | None = None
    """The start of the restart window."""
    word: datetime | None = None
    """The time of the person's last order."""
    stopped: bool = False
    """Whether the stream was seen stopped."""
    blocked: BlockedRestart | None = None
    reached: ReachedPositions = NOWHERE
    """The furthest positions that were seen: a checkpoint that is restored later shows older ones."""
    ledger: Ledger = field(default_factory=Ledger)
    """What was told of the stream."""
    foretold: tuple[str, ...] = ()
    """What the doctor expected for the running generation when the task last acted."""
    safe_mode: SafeMode | None = None
    """When HDFS last refused a look for it, None if it never did."""
    blindness: Blindness = Blindness()
    successor: SuccessorDoubt = SuccessorDoubt()
    stalls: StallMemory = StallMemory()
    declaration: DeclarationMemory = DeclarationMemory()

    def saw(self, reached: ReachedPositions) -> Memory:
        """Return what is known after one more look; a newer generation may have started from an older position."""
        if not reached.concerns(self.reached.generation, self.reached.claim):
            return replace(self, reached=reached)
        positions = furthest(self.reached.positions, reached.positions)
        return replace(self, reached=replace(reached, positions=positions))

    def recalls(self, stored: ReachedPositions) -> Memory:
        """Return what is known beside what a row says that an earlier triggerer saw before it died.

        Anybody who may edit assets can write a row. So it adds to what is known of the same generation, and replaces
        and removes nothing: it can make a start ask a person, and allow none.
        """
        known = self.reached
        if known == NOWHERE:
            return replace(self, reached=stored)
        if not stored.positions or not stored.concerns(known.generation, known.claim):
            return self
        return replace(self, reached=replace(known, positions=furthest(known.positions, stored.positions)))

    def sees(self, generation: int) -> Memory:
        """Return what is known beside this generation: a doubt concerns the one that ran when the task looked."""
        if not self.successor.doubt or self.successor.doubted not in {0, generation}:
            return replace(self, successor=SuccessorDoubt())
        return replace(self, successor=replace(self.successor, doubted=generation))

    def examines(self, stall: Stall, now: datetime) -> Memory:
        """Return what is known once the task is woken to examine a batch; the next time it waits for longer."""
        return replace(self, stalls=StallMemory(stall, stall, now + stall.lasts * CONFIRMS))

    def may_examine(self, stall: Stall, now: datetime) -> bool:
        """Return whether the task may be woken to examine this batch now."""
        examined, again_at = self.stalls.examined, self.stalls.examine_at
        return examined is None or not examined.is_same(stall) or again_at is None or now >= again_at

    def after(self, report: Report) -> Memory:
        """Return what the trigger remembers after a look of its task, which does not show that the watcher sees it."""
        lives = report.phase in {Phase.RUNNING, Phase.STARTING}
        known = replace(
            self,
            plan=report.horizon.plan if report.horizon and lives else None,
            stopped=report.phase is Phase.STOPPED,
            blocked=None,
            foretold=report.foretold,
        )
        return replace(known, successor=SuccessorDoubt(report.declaration.owner_doubt))

    def failed(self, words: str, now: datetime) -> Memory:
        """Return what is known after a look that failed in these words."""
        return replace(self, safe_mode=refused(self.safe_mode, now)) if tells_safe_mode(words) else self

    def to_json(self) -> dict[str, Any]:
        """Return plain data that Airflow can store: times in ISO 8601."""
        blocked = self.blocked
        data = {
            "plan": _written(self.plan),
            "blind_since": _written(self.blindness.since),
            "wakings": self.blindness.wakings,
            "word": _written(self.word),
            "stopped": self.stopped,
            "told": self.ledger.to_json(),
            "doubt": self.successor.doubt,
            "doubted": self.successor.doubted,
            "blocked": blocked
            and {
                "since": _written(blocked.since),
                "tries": blocked.tries,
                "retry_at": _written(blocked.retry_at),
                "word": _written(blocked.word),
            },
            "reached": self.reached.to_json(),
            "stall": self.stalls.stall and self.stalls.stall.to_json(),
            "examine_at": _written(self.stalls.examine_at),
            "examined": self.stalls.examined and self.stalls.examined.to_json(),
            "declared": _written(self.declaration.declared),
            "edit": self.declaration.edit and self.declaration.edit.to_json(),
            "foretold": list(self.foretold),
            "safe_mode": self.safe_mode and self.safe_mode.to_json(),
        }
        return dict(storable(data))

    @classmethod
    def from_json(cls, data: object) -> Memory:
        """Read what `to_json` wrote; what can't be read is forgotten, because a watch without it goes on."""
        if not isinstance(data, Mapping):
            return cls()
        try:
            return cls(
                plan=_read(data.get("plan")),
                blindness=Blindness(_read(data.get("blind_since")), int(data.get("wakings") or 0)),
                word=_read(data.get("word")),
                stopped=bool(data.get("stopped")),
                blocked=_blocked(data.get("blocked")),
                reached=ReachedPositions.from_json(data.get("reached")),
                ledger=Ledger.from_json(data.get("told")),
                successor=SuccessorDoubt(str(data.get("doubt") or ""), int(data.get("doubted") or 0)),
                stalls=StallMemory(
                    Stall.from_json(data.get("stall")),
                    Stall.from_json(data.get("examined")),
                    _read(data.get("examine_at")),
                ),
                declaration=DeclarationMemory(_read(data.get("declared")), PolicyEdit.from_json(data.get("edit"))),
                foretold=tuple(map(str, data.get("foretold") or ())),
                safe_mode=SafeMode.from_json(data.get("safe_mode")),
            )
        except (ValueError, TypeError):
            return cls()


def _blocked(data: object) -> BlockedRestart | None:
    if not isinstance(data, Mapping):
        return None
    since, retry_at = _read(data.get("since")), _read(data.get("retry_at"))
    if since is None or retry_at is None:
        return None
    return BlockedRestart(since, int(data.get("tries") or 0), retry_at, _read(data.get("word")))


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))


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
