"""What triggers tell: each look is held against what was told, and what differs leaves through the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from airflow_kstream import settings
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.declarations import read_policies
from airflow_kstream.model.streams.event import WATCHED, Event, EventKind, Ledger, ToldSubject, Trouble
from airflow_kstream.model.streams.plan import Phase, Settled
from airflow_kstream.notifications.ledgers import Rows, Subject
from airflow_kstream.notifications.notifier import configured, within_at_once
from airflow_kstream.notifications.outbox import Outbox
from airflow_kstream.policy.events.bundles import after, compare, joined
from airflow_kstream.policy.events.signs import (
    CredentialSigns,
    FreezeSigns,
    ProgressSigns,
    Signs,
    StartSigns,
    known,
    troubles,
)
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.triggers.memory import Memory
from airflow_kstream.triggers.notes import Notes

# Seconds after which a process has looked at all streams of a cluster.
_LOOKED_AT_ALL = 300.0
# Seconds for which a teller waits to read what was told, and until it reads again whether more has left.
_PATIENCE, _AGAIN = 60.0, 15.0
_RESTS = {Phase.STOPPED, Phase.HELD}


@dataclass
class _Account:
    """The account of one subject in this process: what has left, and what is known with the events under way."""

    sent: Ledger
    known: Ledger
    under_way: int = 0


class _Process:
    """The outbox of this process, what it told, and where that is kept, for the loop that runs in it."""

    loop: asyncio.AbstractEventLoop | None = None
    rows: Rows
    outbox: Outbox
    accounts: dict[Subject, _Account]
    # Seconds that the next teller of a subject still waits: one that ended before it had read used up its own.
    patience: dict[Subject, float]
    _notes: dict[str, Notes]

    def here(self) -> Self:
        if self.loop is not asyncio.get_running_loop():
            self.loop, self.rows, self.outbox = asyncio.get_running_loop(), Rows(), Outbox(self._settled)
            self.accounts, self.patience, self._notes = {}, {}, {}
        return self

    def notes(self, subject: Subject) -> Notes:
        return self._notes.setdefault(subject[0], Notes(subject[0]))

    def tell(
        self, subject: Subject, notify: NotifyPolicy, before: Ledger, known: Ledger, events: Collection[Event]
    ) -> None:
        """Let events leave that make of one ledger the other."""
        account = self.accounts.get(subject)
        if account is None or not account.under_way:
            account = self.accounts[subject] = _Account(before, known)
        account.known, account.under_way = known, account.under_way + len(events)
        for event in events:
            self.outbox.put(notify, event)

    def join(self, subject: Subject, stored: Ledger) -> None:
        """Take what others had told before this process told something without knowing of it."""
        if account := self.accounts.get(subject):
            account.sent, account.known = joined(stored, account.sent), joined(stored, account.known)
            self._keep(subject, account.sent)

    def _settled(self, event: Event) -> None:
        subject = event.cluster, event.stream
        account = self.accounts[subject]
        account.sent, account.under_way = after(account.sent, event), account.under_way - 1
        self._keep(subject, account.sent)

    def _keep(self, subject: Subject, ledger: Ledger) -> None:
        self.rows.put(subject, ledger)
        self.notes(subject).note(told_subject(subject), ledger)


_process = _Process()


def told_subject(subject: Subject) -> ToldSubject:
    """Return the subject of notes on a stream, or with an empty one on the cluster, by those who watch it."""
    cluster, stream = subject
    return ToldSubject(settings.text("installation"), cluster, stream, "" if stream else WATCHED)


class Teller:
    """A teller of one subject's events: a stream's, or with an empty `stream` the cluster's.

    It is a context manager: within it, it reads what was told before. It tells nothing until it has, or for a minute;
    then it tells as if there had been nothing but what it was `carried`, the ledger of a deferred task, and takes what
    was told into account once it can be read.
    """

    def __init__(
        self, cluster: str, stream: str = "", carried: Ledger | None = None, declared: NotifyPolicy | None = None
    ) -> None:
        self.ledger = carried or Ledger()
        self._subject = cluster, stream
        self._declared = declared or NotifyPolicy()
        self._app_name = ""
        self._loading: asyncio.Task[None] | None = None
        self._patient_until = 0.0

    async def __aenter__(self) -> Self:
        self.load()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loading is None:
            return
        patience = _process.here().patience
        if self._loading.done():
            patience.pop(self._subject, None)
        else:
            # A stream that dies at each start has a trigger for seconds, and tells nevertheless.
            patience[self._subject] = max(self._patient_until - asyncio.get_running_loop().time(), 0.0)
        self._loading.cancel()

    @property
    def handed_on(self) -> Ledger:
        """Return what a deferred task carries: what has left, and how many events are on their way.

        This process may end before they leave: then the next one tells them.
        """
        account = _process.here().accounts.get(self._subject)
        if account is None or not account.under_way:
            return self.ledger
        return replace(account.sent, under_way=account.under_way)

    def load(self) -> None:
        """Begin to read what was told."""
        left = _process.here().patience.get(self._subject, _PATIENCE)
        self._patient_until = asyncio.get_running_loop().time() + left
        self._loading = asyncio.create_task(self._load(), context=Context())

    def saw(
        self,
        seen: Iterable[Trouble],
        kinds: Collection[EventKind],
        declared: NotifyPolicy | None = None,
        app_name: str | None = None,
    ) -> Ledger:
        """Tell what begins and ends by a look, and return what was told by now.

        `kinds` are those that it can judge, `declared` is the notifier that it saw declared, None if it saw none, and
        `app_name` what people call the stream, None if it did not see that.
        """
        self._declared = declared or self._declared
        self._app_name = self._app_name if app_name is None else app_name
        if self._loading is None:
            return self.ledger
        before = self.ledger
        if not self._loading.done():
            if self._is_patient():
                return self.ledger
            before = replace(before, alone=True, under_way=0)
        if not self._subject[1]:
            # Other triggerers watch streams of the cluster, too, and none knows what the others told meanwhile.
            before = replace(before, alone=True)
        ledger, events = compare(before, seen, kinds, datetime.now(UTC), *self._subject, self._app_name)
        if events:
            self.ledger = ledger
            _process.here().tell(self._subject, self._notifier(), before, ledger, events)
        return self.ledger

    def _is_patient(self) -> bool:
        return asyncio.get_running_loop().time() < self._patient_until

    async def _load(self) -> None:
        process = _process.here()
        account = process.accounts.get(self._subject)
        if account and account.known.changes >= self.ledger.changes:
            # Another teller of this process told them: they need not have left.
            self.ledger = account.known
        stored = await self._read(process.notes(self._subject))
        told_meanwhile = self.ledger.alone
        self.ledger = joined(stored, self.ledger)
        if told_meanwhile:
            process.join(self._subject, stored)

    async def _read(self, notes: Notes) -> Ledger:
        """Read what was told. What was on its way when the ledger was handed on may be noted a moment later."""
        subject, carried = told_subject(self._subject), self.ledger
        stored = await notes.read(subject)
        while carried.under_way and stored.changes < carried.changes + carried.under_way and self._is_patient():
            await asyncio.sleep(_AGAIN)
            stored = await notes.read(subject)
        return stored

    def _notifier(self) -> NotifyPolicy:
        # The setting was refused where DAGs are parsed; no watch ends by it.
        with suppress(InvalidInput):
            return configured(within_at_once(self._subject[0], self._declared))
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
        refusal = verdict.past.blocked.why if verdict.past.blocked else verdict.why
        signs = replace(signs, start=replace(signs.start, refusal=refusal))
    elif verdict.lives:
        signs = replace(signs, start=replace(signs.start, refusal=memory.successor.doubt))
    foretold = "; ".join(memory.foretold) if verdict.lives else ""
    return tuple(replace(trouble, foretold=foretold) for trouble in troubles(signs)), known(signs)


def _of_replacement(verdict: Verdict) -> dict[str, Any]:
    """Return the signs of the warning. An event tells that its time has passed; pages foretell it."""
    replacement, seen = verdict.credentials.replacement, verdict.seen
    if replacement is None or seen is None:
        return {}
    lost = replacement.words(seen.now) if replacement.lost(seen.now) else ""
    return {"not_replaceable": lost, "replacement_known": replacement.known, "keeper": replacement.silent}


def signs_of(verdict: Verdict, *, blind: bool) -> Signs:
    if verdict.step is None:
        return Signs(concluded=False, blind=blind, why=verdict.why)
    phase = verdict.step.phase if isinstance(verdict.step, Settled) else None
    return Signs(
        why=verdict.why,
        credentials=CredentialSigns(
            plan_in=verdict.credentials.plan_in,
            left=verdict.credentials.remaining,
            horizon=verdict.credentials.horizon,
            not_refreshed=verdict.credentials.refreshed.trouble if verdict.credentials.refreshed else "",
            **_of_replacement(verdict),
        ),
        lives=verdict.lives,
        progress=ProgressSigns(
            works=verdict.progress.works,
            pulse=verdict.progress.pulse,
            pulse_why=verdict.progress.pulse_why,
            starving=verdict.progress.starving,
            shared=verdict.past.environment if verdict.progress.starving else "",
            queued=verdict.progress.queued,
            queued_too_long=verdict.progress.queued_too_long,
        ),
        rests=phase in _RESTS and not verdict.lives,
        settled=phase is not None,
        freeze=FreezeSigns(
            held_back=phase is Phase.FROZEN,
            frozen=bool(verdict.people.freeze),
            falls_into_freeze=verdict.people.freeze_warning,
        ),
        start=StartSigns(
            former_spec=verdict.past.former_spec,
            breaker_open=verdict.breaker_open,
            blocked=verdict.past.blocked,
            waits_for_a_person=verdict.past.waits_for_a_person is not None,
        ),
    )
