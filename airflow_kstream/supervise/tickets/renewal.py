"""Many tickets kept fresh, each by itself: what fails is counted, told, and an alert before it hurts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.kerberos.renewal_failures import NONE, Failures, forget, recall, remember
from airflow_kstream.model.errors import CredentialError, KstreamError
from airflow_kstream.model.identity import Identity, split_principal
from airflow_kstream.model.plain import fields_of, plain
from airflow_kstream.model.ticket import CacheKind, Ticket, TicketCache, split_cache_name
from airflow_kstream.policy.tickets.renewal import RenewalPolicy, TicketState, ticket_state
from airflow_kstream.supervise.tickets.kdc_breaker import RealmCircuitBreaker

# Of a realm. They wait for its KDC, not for each other, and nobody waits for another realm's.
_AT_ONCE = 4
# Of a cache of libkrb5's format 3 or 4, and of one to which nothing was written.
_BEGINNINGS = {b"\x05\x03", b"\x05\x04", b""}


@dataclass(frozen=True)
class ManagedTicket:
    """A principal's ticket that is to be kept fresh, and the file of its own where it lies.

    `in_our_folder`: nobody has named the file, it lies where nothing but kept tickets belongs.
    """

    cluster: str
    identity: Identity
    cache: Path
    in_our_folder: bool = False

    @property
    def principal(self) -> str:
        return self.identity.principal


class RenewalOutcome(StrEnum):
    """KEPT is fresh enough as it was, RENEWED by its own renewability, ACQUIRED by keytab or from another cache."""

    KEPT = "kept"
    RENEWED = "renewed"
    ACQUIRED = "acquired"
    FAILED = "failed"


@dataclass(frozen=True)
class TicketStatus:
    """What lies in the cache now. `error` says why it can't be told; `failures` are of the renewals before."""

    kept: ManagedTicket
    state: TicketState
    ticket: Ticket | None = None
    failures: Failures = NONE
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
class RenewalReport:
    """How one renewal went. `state` is the cache's afterwards.

    `failures` are consecutive ones and `failing_since` is the first one's time, this one included; where the folder
    takes no file they can't be kept, `counted` is False, and each one is the first. `retryable` is False where
    somebody has to change something first. `copied_from` is the cache out of which the ticket was taken.
    """

    cluster: str
    principal: str
    cache: str
    outcome: RenewalOutcome
    state: TicketState
    expiry: datetime | None = None
    renew_until: datetime | None = None
    failures: int = 0
    failing_since: datetime | None = None
    counted: bool = True
    copied_from: str = ""
    error: str = ""
    retryable: bool = True

    @property
    def alert(self) -> bool:
        """Whether nobody may wait for the next round: the old ticket serves not much longer, or not at all."""
        return self.outcome is RenewalOutcome.FAILED and self.state.alarming

    def to_json(self) -> dict[str, Any]:
        """Return plain data, times in ISO 8601."""
        return {**fields_of(self), "alert": self.alert}


def renew_all(kept: Sequence[ManagedTicket], policy: RenewalPolicy, *, force: bool = False) -> Iterator[RenewalReport]:
    """Renew what is due, or everything by `force`, several at a time; a report for each, in their order.

    Nothing is raised for a ticket that could not be renewed: its report says so, and the others go on. A cache that
    is another principal's, or a file that is no cache but was named by somebody, is left as it is. A realm whose KDCs
    keep silent is given up for this round, so that hundreds of principals do not wait for it one after the other, and
    those of other realms are renewed meanwhile.
    """
    renew = partial(_renew_one, policy=policy, silent=RealmCircuitBreaker(), force=force)
    with _pools(kept) as pools:
        coming: list[Future[RenewalReport]] = [pools[_realm(each)].submit(renew, each) for each in kept]
        try:
            for report in coming:
                yield report.result()
        finally:
            # Whoever stops reading in between wants no more of them.
            for report in coming:
                report.cancel()


@contextmanager
def _pools(kept: Sequence[ManagedTicket]) -> Iterator[Mapping[str, Executor]]:
    """One for each realm."""
    with ExitStack() as stack:
        yield {
            realm: stack.enter_context(ThreadPoolExecutor(_AT_ONCE, f"renewal-{realm}"))
            for realm in {_realm(each) for each in kept}
        }


def _realm(kept: ManagedTicket) -> str:
    return split_principal(kept.principal)[2]


def look(kept: ManagedTicket) -> TicketCache | None:
    """What lies in the kept cache; None when there is none yet.

    Raise CredentialError when it is damaged, no cache, or another principal's.
    """
    tried = f"look into {kept.cache}"
    try:
        kept.cache.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CredentialError(error.strerror or str(error), tried=tried, principal=kept.principal) from error
    try:
        found = tickets.inspect(str(kept.cache))
    except CredentialError as error:
        raise _with_remedy(error, kept) from error
    if found.principal != kept.principal:
        remedy = "delete it" if kept.in_our_folder else "name another file for one of them"
        why = f"it is a cache of {found.principal}: {remedy}"
        raise CredentialError(why, tried=tried, principal=kept.principal)
    return found


def ticket_status(kept: ManagedTicket, policy: RenewalPolicy) -> TicketStatus:
    """How the kept ticket stands; nobody is asked, and a cache that can't be read is MISSING with its error."""
    failures = recall(kept.cache)
    try:
        _require_java(kept.identity)
        ticket = _granting(look(kept))
    except KstreamError as error:
        return TicketStatus(kept, TicketState.MISSING, failures=failures, error=error)
    return TicketStatus(kept, ticket_state(ticket, policy, datetime.now(UTC)), ticket, failures)


def _renew_one(
    kept: ManagedTicket, policy: RenewalPolicy, silent: RealmCircuitBreaker, *, force: bool
) -> RenewalReport:
    before = ticket_status(kept, policy)
    outcome, ticket = RenewalOutcome.KEPT, before.ticket
    try:
        if before.error and not _is_replaced(kept):
            raise before.error
        if force or before.state is not TicketState.FRESH:
            with silent.asking(kept.principal, f"renew the ticket in {kept.cache}"):
                outcome, ticket = _replenish(kept, before.ticket)
    except KstreamError as error:
        return _failed(ticket_status(kept, policy), error)
    if before.failures.count:
        forget(kept.cache)
    report = _report(TicketStatus(kept, ticket_state(ticket, policy, datetime.now(UTC)), ticket), outcome)
    copied = outcome is RenewalOutcome.ACQUIRED and not kept.identity.keytab
    return replace(report, copied_from=kept.identity.ticket_cache or "") if copied else report


def _is_replaced(kept: ManagedTicket) -> bool:
    """Whether its file is damaged and may be replaced: a torn cache, or whatever else lies in our own folder.

    Never another principal's cache, nor a file of another kind that somebody has named, by mistake it seems.
    """
    try:
        tickets.inspect(str(kept.cache))
    except CredentialError:
        with suppress(OSError):
            return kept.cache.is_file() and (kept.in_our_folder or _begins_like_a_cache(kept.cache))
    return False


def _begins_like_a_cache(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(2) in _BEGINNINGS


def _with_remedy(error: CredentialError, kept: ManagedTicket) -> CredentialError:
    """Where it is a file that can be read: what it is."""
    if not os.access(kept.cache, os.R_OK) or not kept.cache.is_file():
        return error
    what = "the next renewal replaces it"
    if not _is_replaced(kept):
        what = "it is left as it is, for it was named as the cache: delete it, or name another file"
    return CredentialError(f"{error.message.rstrip('.')}; {what}", tried=error.tried, principal=kept.principal)


def _replenish(kept: ManagedTicket, held: Ticket | None) -> tuple[RenewalOutcome, Ticket]:
    if kept.identity.keytab or _source_serves_longer(kept, held):
        return RenewalOutcome.ACQUIRED, tickets.log_in(kept.identity, kept.cache)
    return RenewalOutcome.RENEWED, tickets.renew(kept.principal, kept.cache)


def _source_serves_longer(kept: ManagedTicket, held: Ticket | None) -> bool:
    """Whether somebody has logged in again where ours was copied from."""
    if held is None:
        return True
    try:
        source = _granting(tickets.inspect(kept.identity.ticket_cache or ""))
    except CredentialError:
        # Ours renews itself as long as it can, without its origin.
        return False
    return source is not None and source.expiry > held.expiry


def _granting(cache: TicketCache | None) -> Ticket | None:
    return cache.granting if cache else None


def _require_java(identity: Identity) -> None:
    """A source of a kind that nobody but libkrb5 reads is refused in the words of `inspect`."""
    if identity.keytab or not identity.ticket_cache:
        return
    kind, _ = split_cache_name(identity.ticket_cache)
    if kind in {CacheKind.KCM, CacheKind.KEYRING}:
        tickets.inspect(identity.ticket_cache)


def _failed(now: TicketStatus, error: KstreamError) -> RenewalReport:
    failures = now.failures.another(datetime.now(UTC), str(error))
    counted = remember(now.kept.cache, failures)
    report = _report(replace(now, failures=failures), RenewalOutcome.FAILED)
    return replace(report, counted=counted, error=str(error), retryable=error.retryable)


def _report(now: TicketStatus, outcome: RenewalOutcome) -> RenewalReport:
    return RenewalReport(
        cluster=now.kept.cluster,
        principal=now.kept.principal,
        cache=str(now.kept.cache),
        outcome=outcome,
        state=now.state,
        expiry=now.ticket.expiry if now.ticket else None,
        renew_until=now.ticket.renew_until if now.ticket else None,
        failures=now.failures.count,
        failing_since=now.failures.since,
    )
