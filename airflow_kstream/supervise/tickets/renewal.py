"""Renewal of many tickets, each independently: failures are counted, reported, and raise an alert in time.

A realm whose KDCs do not answer is given up for the rest of the round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from threading import Condition
from typing import Any

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import CredentialError, KstreamError, Unavailable
from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.model.kerberos.identity import Identity, split_cache_name, split_principal
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.plain import Group, fields_of, plain
from airflow_kstream.policy.tickets import TicketState, ticket_state
from airflow_kstream.supervise.tickets.managed import (
    NO_FAILURES,
    CacheCondition,
    CacheState,
    Failures,
    ManagedTicket,
    forget,
    read_cache,
    recall,
    remember,
)

# libkrb5 waits 25 s for a KDC that drops its requests. One silence may be chance.
_GIVE_UP_AFTER = 3


class RealmCircuitBreaker:
    """The breaker of one round: once a realm's KDCs did not answer for three principals, its others fail at once.

    The next answer to a request that still waits closes the breaker of that realm. It is thread-safe: after a silence
    no new request starts until the pending ones have ended or one of them was answered.

    `give_up_after` is how many silences are enough.
    """

    def __init__(self, give_up_after: int = _GIVE_UP_AFTER) -> None:
        self._give_up_after = give_up_after
        self._silences: Counter[str] = Counter()
        self._pending: Counter[str] = Counter()
        self._changed = Condition()

    @contextmanager
    def request(self, principal: str, tried: str) -> Iterator[None]:
        """Guard a request to the principal's realm. Raises Unavailable: when the realm was given up before."""
        realm = split_principal(principal)[2]
        with self._changed:
            self._changed.wait_for(lambda: not self._silences[realm] or not self._pending[realm])
            self._require_speaking(realm, principal, tried)
            self._pending[realm] += 1
        answered = True
        try:
            yield
        except Unavailable:
            answered = False
            raise
        finally:
            with self._changed:
                self._pending[realm] -= 1
                self._silences[realm] = 0 if answered else self._silences[realm] + 1
                self._changed.notify_all()

    def note_silence(self, principal: str) -> None:
        """Count a request outside of `request` to which no KDC of the principal's realm answered."""
        with self._changed:
            self._silences[split_principal(principal)[2]] += 1

    def require_speaking(self, principal: str, tried: str) -> None:
        """Check the principal's realm without counting what follows. Raises Unavailable: when it was given up."""
        with self._changed:
            self._require_speaking(split_principal(principal)[2], principal, tried)

    def _require_speaking(self, realm: str, principal: str, tried: str) -> None:
        silences = self._silences[realm]
        if silences >= self._give_up_after:
            earlier = "an earlier request" if silences == 1 else f"{silences} earlier requests"
            words = f"not contacted: no KDC of {realm} answered {earlier} of this round"
            raise Unavailable(words, tried=tried, principal=principal)


# Per realm. Renewals wait for their own realm's KDC only.
_AT_ONCE = 4


class RenewalOutcome(StrEnum):
    """The outcome of a renewal: KEPT as fresh enough, RENEWED, or ACQUIRED by keytab or from another cache."""

    KEPT = "kept"
    RENEWED = "renewed"
    ACQUIRED = "acquired"
    FAILED = "failed"


@dataclass(frozen=True)
class TicketStatus:
    """The cache's content now. `error` is why it is unknown; `failures` are the failed renewals so far."""

    kept: ManagedTicket
    state: TicketState
    ticket: Ticket | None = None
    failures: Failures = NO_FAILURES
    error: KstreamError | None = None

    @property
    def alert(self) -> bool:
        return self.state.alarming

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data, times in ISO 8601. `error` is why it is unknown, else why the last renewal failed."""
        return {
            "cluster": self.kept.cluster,
            "principal": self.kept.principal,
            "cache": str(self.kept.cache),
            "state": self.state.value,
            "alert": self.alert,
            "error": str(self.error or "") or self.failures.why,
            "failures": self.failures.count,
            "failing_since": plain(self.failures.since),
            **(self.ticket.to_json(now) if self.ticket else {}),
        }


@dataclass(frozen=True)
class FailureReport(Group):
    """The failed renewals of a cache."""

    failures: int = 0
    """The consecutive ones, this one included."""
    failing_since: datetime | None = None
    """The time of the first."""
    counted: bool = True
    """False if the folder is not writable, so that the count can't be kept: then each failure is the first."""


@dataclass(frozen=True)
class RenewalReport:
    """The result of one renewal."""

    cluster: str
    principal: str
    cache: str
    outcome: RenewalOutcome
    state: TicketState
    """The cache's state afterwards."""
    expiry: datetime | None = None
    renew_until: datetime | None = None
    failing: FailureReport = FailureReport()
    copied_from: str = ""
    """The cache from which the ticket was copied."""
    error: str = ""
    retryable: bool = True
    """False if somebody has to change something first."""

    @property
    def alert(self) -> bool:
        """Tell whether this can't wait for the next round: the old ticket expires soon, or is of no use."""
        return self.outcome is RenewalOutcome.FAILED and self.state.alarming

    def to_json(self) -> dict[str, Any]:
        """Return plain data, times in ISO 8601."""
        return {**fields_of(self), "alert": self.alert}


def renew_all(kept: Sequence[ManagedTicket], policy: RenewalPolicy, *, force: bool = False) -> Iterator[RenewalReport]:
    """Renew the tickets that are due, or all with `force`, several at a time; yield a report for each, in their order.

    A failed renewal raises no error: its report says so, and the others continue. A FOREIGN cache is left as it is. A
    realm whose KDCs do not respond is given up for this round, so that hundreds of principals do not wait for it one
    after the other; other realms' tickets are renewed meanwhile.
    """
    renew = partial(_renew_one, policy=policy, breaker=RealmCircuitBreaker(), force=force)
    with _pools(kept) as pools:
        coming: list[Future[RenewalReport]] = [pools[ticket.realm].submit(renew, ticket) for ticket in kept]
        try:
            for report in coming:
                yield report.result()
        finally:
            # A caller that stops reading early needs no further renewals.
            for report in coming:
                report.cancel()


@contextmanager
def _pools(kept: Sequence[ManagedTicket]) -> Iterator[Mapping[str, Executor]]:
    """Open an executor for each realm."""
    with ExitStack() as stack:
        yield {
            realm: stack.enter_context(ThreadPoolExecutor(_AT_ONCE, f"renewal-{realm}"))
            for realm in {ticket.realm for ticket in kept}
        }


def ticket_status(kept: ManagedTicket, policy: RenewalPolicy) -> TicketStatus:
    """Return the state of the kept ticket, without any request; an unreadable cache is MISSING, with its error."""
    return _status(kept, read_cache(kept), policy)


def _status(kept: ManagedTicket, cache: CacheState, policy: RenewalPolicy) -> TicketStatus:
    failures, error = recall(kept.cache), _unusable_source(kept.identity) or cache.error
    if error:
        return TicketStatus(kept, TicketState.MISSING, failures=failures, error=error)
    return TicketStatus(kept, ticket_state(cache.ticket, policy, datetime.now(UTC)), cache.ticket, failures)


def _renew_one(
    kept: ManagedTicket, policy: RenewalPolicy, breaker: RealmCircuitBreaker, *, force: bool
) -> RenewalReport:
    cache = read_cache(kept)
    before = _status(kept, cache, policy)
    outcome, ticket = RenewalOutcome.KEPT, cache.ticket
    try:
        if before.error and cache.condition is not CacheCondition.DAMAGED:
            raise before.error
        if force or before.state is not TicketState.FRESH:
            with breaker.request(kept.principal, f"renew the ticket in {kept.cache}"):
                outcome, ticket = _replenish(kept, cache.ticket)
    except KstreamError as error:
        now = ticket_status(kept, policy)
        if now.ticket == cache.ticket or now.state is not TicketState.FRESH:
            return _failed(now, error)
        # Another process renewed it meanwhile.
        ticket = now.ticket
    if before.failures.count:
        forget(kept.cache)
    report = _report(TicketStatus(kept, ticket_state(ticket, policy, datetime.now(UTC)), ticket), outcome)
    copied = outcome is RenewalOutcome.ACQUIRED and not kept.identity.keytab
    return replace(report, copied_from=kept.identity.ticket_cache or "") if copied else report


def _replenish(kept: ManagedTicket, held: Ticket | None) -> tuple[RenewalOutcome, Ticket]:
    if held is None or kept.identity.keytab or _source_serves_longer(kept.identity, held):
        return RenewalOutcome.ACQUIRED, tickets.log_in(kept.identity, kept.cache)
    return RenewalOutcome.RENEWED, tickets.renew(held, kept.cache)


def _source_serves_longer(identity: Identity, held: Ticket) -> bool:
    """Tell whether the source of our copy now holds a ticket that lasts longer, from a new login."""
    try:
        source = tickets.inspect(identity.ticket_cache or "").granting
    except CredentialError:
        # Our copy is renewed for as long as possible without its source.
        return False
    return source is not None and source.expiry > held.expiry


def _unusable_source(identity: Identity) -> KstreamError | None:
    """Return the error of a source of a kind that only libkrb5 reads, in the words of `inspect`."""
    if identity.keytab or not identity.ticket_cache:
        return None
    if split_cache_name(identity.ticket_cache)[0].ours:
        return None
    try:
        tickets.inspect(identity.ticket_cache)
    except KstreamError as error:
        return error
    return None


def _failed(now: TicketStatus, error: KstreamError) -> RenewalReport:
    failures = now.failures.another(datetime.now(UTC), str(error))
    counted = remember(now.kept.cache, failures)
    report = _report(replace(now, failures=failures), RenewalOutcome.FAILED)
    failing = replace(report.failing, counted=counted)
    return replace(report, failing=failing, error=str(error), retryable=error.retryable)


def _report(now: TicketStatus, outcome: RenewalOutcome) -> RenewalReport:
    return RenewalReport(
        cluster=now.kept.cluster,
        principal=now.kept.principal,
        cache=str(now.kept.cache),
        outcome=outcome,
        state=now.state,
        expiry=now.ticket.expiry if now.ticket else None,
        renew_until=now.ticket.renew_until if now.ticket else None,
        failing=FailureReport(now.failures.count, now.failures.since),
    )
