"""Renewal of many tickets, each independently: failures are counted, reported, and raise an alert in time."""

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

# Per realm. Renewals wait for their own realm's KDC only.
_AT_ONCE = 4
# The first bytes of a cache in libkrb5's format 3 or 4, and of an empty one.
_BEGINNINGS = {b"\x05\x03", b"\x05\x04", b""}


@dataclass(frozen=True)
class ManagedTicket:
    """A principal's ticket that is kept fresh, and the file that holds it alone.

    `in_our_folder` is True if nobody named the file: it lies in the folder that is only for kept tickets.
    """

    cluster: str
    identity: Identity
    cache: Path
    in_our_folder: bool = False

    @property
    def principal(self) -> str:
        return self.identity.principal


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
    """The result of one renewal. `state` is the cache's state afterwards.

    `failures` counts consecutive failures, including this one, and `failing_since` is the time of the first. If the
    folder is not writable the count can't be kept: `counted` is False, and each failure is the first. `retryable` is
    False if somebody has to change something first. `copied_from` is the cache from which the ticket was copied.
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
        """Tell whether this can't wait for the next round: the old ticket expires soon, or is of no use."""
        return self.outcome is RenewalOutcome.FAILED and self.state.alarming

    def to_json(self) -> dict[str, Any]:
        """Return plain data, times in ISO 8601."""
        return {**fields_of(self), "alert": self.alert}


def renew_all(kept: Sequence[ManagedTicket], policy: RenewalPolicy, *, force: bool = False) -> Iterator[RenewalReport]:
    """Renew the tickets that are due, or all with `force`, several at a time; yield a report for each, in their order.

    A failed renewal raises no error: its report says so, and the others continue. Another principal's cache, or a
    file that somebody named but that is no cache, is left as it is. A realm whose KDCs do not respond is given up for
    this round, so that hundreds of principals do not wait for it one after the other; other realms' tickets are
    renewed meanwhile.
    """
    renew = partial(_renew_one, policy=policy, silent=RealmCircuitBreaker(), force=force)
    with _pools(kept) as pools:
        coming: list[Future[RenewalReport]] = [pools[_realm(each)].submit(renew, each) for each in kept]
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
            for realm in {_realm(each) for each in kept}
        }


def _realm(kept: ManagedTicket) -> str:
    return split_principal(kept.principal)[2]


def look(kept: ManagedTicket) -> TicketCache | None:
    """Read the kept cache; None if there is none yet.

    Raises CredentialError: when it is damaged, not a cache, or another principal's.
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
    """Return the state of the kept ticket, without any request; an unreadable cache is MISSING, with its error."""
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
    """Tell whether its file is damaged and may be replaced: a torn cache, or any other file in our own folder.

    Never replaceable: another principal's cache, and a file of another kind that somebody named, probably by mistake.
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
    """Add what the file is, if it can be read."""
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
    """Tell whether the source of our copy now holds a ticket that lasts longer, from a new login."""
    if held is None:
        return True
    try:
        source = _granting(tickets.inspect(kept.identity.ticket_cache or ""))
    except CredentialError:
        # Our copy is renewed for as long as possible without its source.
        return False
    return source is not None and source.expiry > held.expiry


def _granting(cache: TicketCache | None) -> Ticket | None:
    return cache.granting if cache else None


def _require_java(identity: Identity) -> None:
    """Refuse a source of a kind that only libkrb5 reads, with the words of `inspect`."""
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
