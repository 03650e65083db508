"""What triggers tell: each look is held against what was told, and what differs leaves through the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.event import EventKind, Ledger, Trouble
from airflow_kstream.model.notify import NotifyPolicy
from airflow_kstream.model.persisted_spec import read_policies
from airflow_kstream.model.plan import Phase, Settled
from airflow_kstream.notifications.ledgers import Ledgers
from airflow_kstream.notifications.notifier import configured
from airflow_kstream.notifications.outbox import Outbox
from airflow_kstream.policy.events.ledger import compare, newer
from airflow_kstream.policy.events.signs import Signs, known, troubles
from airflow_kstream.supervise.streams.watch import Verdict
from airflow_kstream.triggers.memory import Memory

# Seconds after which a process has looked at all streams of a cluster.
_LOOKED_AT_ALL = 300.0
_RESTS = {Phase.STOPPED, Phase.HELD}


class _Process:
    """The outbox and the ledgers of this process, for the loop that runs in it."""

    loop: asyncio.AbstractEventLoop | None = None
    ledgers: Ledgers
    outbox: Outbox

    def here(self) -> Self:
        if self.loop is not asyncio.get_running_loop():
            self.loop, self.ledgers = asyncio.get_running_loop(), Ledgers()
            self.outbox = Outbox(self.ledgers.told)
        return self


_process = _Process()


class Teller:
    """A teller of one subject's events: a stream's, or with an empty `stream` the cluster's.

    It is a context manager: within it, it reads the stored ledger, and tells nothing before. `carried` is the
    ledger that a deferred task carries.
    """

    def __init__(
        self, cluster: str, stream: str = "", carried: Ledger | None = None, declared: NotifyPolicy | None = None
    ) -> None:
        self.ledger = carried or Ledger()
        self._subject = cluster, stream
        self._declared = declared or NotifyPolicy()
        self._loading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.load()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loading is not None:
            self._loading.cancel()

    def load(self) -> None:
        """Begin to read the stored ledger."""
        self._loading = asyncio.create_task(self._load(), context=Context())

    def saw(
        self, seen: Iterable[Trouble], kinds: Collection[EventKind], declared: NotifyPolicy | None = None
    ) -> Ledger:
        """Tell what begins and ends by a look, and return what was told by now.

        `kinds` are those that it can judge, `declared` is the notifier that it saw declared, None if it saw none.
        """
        self._declared = declared or self._declared
        if self._loading is None or not self._loading.done():
            return self.ledger
        self.ledger, events = compare(self.ledger, seen, kinds, datetime.now(UTC), *self._subject)
        if events:
            process, notify = _process.here(), self._notifier()
            process.ledgers.keep(self._subject, self.ledger)
            for event in events:
                process.outbox.put(notify, event)
        return self.ledger

    async def _load(self) -> None:
        self.ledger = newer(await _process.here().ledgers.load(self._subject), self.ledger)

    def _notifier(self) -> NotifyPolicy:
        # The setting was refused where DAGs are parsed; no watch ends by it.
        with suppress(InvalidInput):
            return configured(self._declared)
        return NotifyPolicy()


class ClusterTeller:
    """A teller of a cluster's events, for as long as this process lives.

    Each triggerer that watches streams of the cluster tells what it sees of it.
    """

    def __init__(self, cluster: str) -> None:
        self._teller = Teller(cluster)
        self._began: float | None = None

    def looked(self, unreachable: str, environment: Collection[str], *, concluded: bool) -> None:
        """Take why the cluster is unreachable, empty if it is not, and the causes that end its streams.

        `concluded` is whether this look shows that the cluster can be reached.
        """
        now = asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
            self._teller.load()
        seen = [Trouble(EventKind.ENVIRONMENT, "they follow by themselves", cause) for cause in environment]
        seen += [Trouble(EventKind.UNREACHABLE, unreachable)] if unreachable else []
        if now - self._began < _LOOKED_AT_ALL:
            # An earlier process told of these, and this one has not looked at every stream yet.
            lasting = self._teller.ledger.lasting.values()
            seen += [Trouble(each.kind, each.why, each.about) for each in lasting if each.kind is EventKind.ENVIRONMENT]
        # While it is away, only its patience may not have passed yet.
        judged = {EventKind.UNREACHABLE} if unreachable or concluded else set()
        self._teller.saw(seen, {EventKind.ENVIRONMENT, *judged})


def declared_notifier(policies: Mapping[str, Any] | None) -> NotifyPolicy:
    """Return the notifier among a declaration's policies, as plain data."""
    notify: NotifyPolicy = read_policies(policies or {})["notify"]
    return notify


def look(verdict: Verdict, memory: Memory, *, blind: bool) -> tuple[tuple[Trouble, ...], frozenset[EventKind]]:
    """Return the troubles that a verdict shows, with what the task could not do, and the kinds that it can judge.

    `blind` is whether the stream alone has not been seen for long.
    """
    signs = signs_of(verdict, blind=blind)
    if memory.blocked is not None:
        signs = replace(signs, refusal=verdict.blocked.why if verdict.blocked else verdict.why)
    elif verdict.lives:
        signs = replace(signs, refusal=memory.doubt)
    foretold = f"; foretold: {'; '.join(memory.foretold)}" if memory.foretold and verdict.lives else ""
    told = (replace(trouble, why=f"{trouble.why}{foretold}") for trouble in troubles(signs))
    return tuple(told), known(signs)


def signs_of(verdict: Verdict, *, blind: bool) -> Signs:
    if verdict.step is None:
        return Signs(concluded=False, blind=blind, why=verdict.why)
    phase = verdict.step.phase if isinstance(verdict.step, Settled) else None
    return Signs(
        why=verdict.why,
        plan_in=verdict.plan_in,
        left=verdict.remaining,
        horizon=verdict.horizon,
        lives=verdict.lives,
        works=verdict.works,
        rests=phase in _RESTS and not verdict.lives,
        settled=phase is not None,
        held_back=phase is Phase.FROZEN,
        frozen=bool(verdict.freeze),
        falls_into_freeze=verdict.freeze_warning,
        former_spec=verdict.former_spec,
        pulse=verdict.heartbeat.pulse if verdict.heartbeat else None,
        pulse_why=verdict.heartbeat.why if verdict.heartbeat else "",
        breaker_open=verdict.breaker_open,
        blocked=verdict.blocked,
        waits_for_a_person=verdict.waits_for_a_person is not None,
        queued=verdict.queued,
        queued_too_long=verdict.queued_too_long,
        not_refreshed=verdict.refreshed.trouble if verdict.refreshed else "",
    )
