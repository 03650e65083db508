"""Many tickets kept fresh, each by itself: what fails is counted, told, and an alert before it hurts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from airflow_kstream.clients import tickets
from airflow_kstream.clients.renewal_memory import NONE, Failures, forget, recall, remember
from airflow_kstream.model.errors import CredentialError, KstreamError
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.ticket import CacheKind, Ticket, TicketCache, split_cache_name
from airflow_kstream.policy.tickets import RenewalPolicy, TicketState, ticket_state
from airflow_kstream.supervise.silent_realms import SilentRealms

# They wait for the KDC, not for each other.
_AT_ONCE = 4
# Of a cache of libkrb5's format 3 or 4, and of one to which nothing was written.
_BEGINNINGS = {b"\x05\x03", b"\x05\x04", b""}


@dataclass(frozen=True)
class KeptTicket:
    """A principal's ticket that is to be kept fresh, and the file of its own where it lies."""

    cluster: str
    identity: Identity
    cache: Path

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
class TicketStanding:
    """What lies in the cache now. `error` says why it can't be told; `failures` are of the renewals before."""

    kept: KeptTicket
    state: TicketState
    ticket: Ticket | None = None
    failures: Failures = NONE
    error: KstreamError | None = None

    @property
    def alert(self) -> bool:
        return self.state.alarming


@dataclass(frozen=True)
class RenewalReport:
    """How one renewal went. `state` is the cache's afterwards.

    `failures` are consecutive ones and `failing_since` is the first one's time, this one included. `retryable` is
    False where somebody has to change something first.
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
    error: str = ""
    retryable: bool = True

    @property
    def alert(self) -> bool:
        """Whether nobody may wait for the next round: the old ticket serves not much longer, or not at all."""
        return self.outcome is RenewalOutcome.FAILED and self.state.alarming

    def to_json(self) -> dict[str, Any]:
        said = {name: _plain(value) for name, value in vars(self).items()}
        return {**said, "alert": self.alert}


def renew_all(kept: Sequence[KeptTicket], policy: RenewalPolicy, *, force: bool = False) -> Iterator[RenewalReport]:
    """Renew what is due, or everything by `force`, several at a time; a report for each, in their order.

    Nothing is raised for a ticket that could not be renewed: its report says so, and the others go on. A cache that
    is another principal's, or a file that is no cache, is left as it is. A realm whose KDCs keep silent is given up
    for this round, so that hundreds of principals do not wait for it one after the other.
    """
    renew = partial(_renew_one, policy=policy, silent=SilentRealms(), force=force)
    with ThreadPoolExecutor(_AT_ONCE, "renewal") as pool:
        yield from pool.map(renew, kept)


def look(kept: KeptTicket) -> TicketCache | None:
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
    found = tickets.inspect(str(kept.cache))
    if found.principal != kept.principal:
        why = f"it is a cache of {found.principal}: name another file for one of them"
        raise CredentialError(why, tried=tried, principal=kept.principal)
    return found


def standing(kept: KeptTicket, policy: RenewalPolicy) -> TicketStanding:
    """How the kept ticket stands; nobody is asked, and a cache that can't be read is MISSING with its error."""
    failures = recall(kept.cache)
    try:
        _require_java(kept.identity)
        ticket = _granting(look(kept))
    except KstreamError as error:
        return TicketStanding(kept, TicketState.MISSING, failures=failures, error=error)
    return TicketStanding(kept, ticket_state(ticket, policy, datetime.now(UTC)), ticket, failures)


def _renew_one(kept: KeptTicket, policy: RenewalPolicy, silent: SilentRealms, *, force: bool) -> RenewalReport:
    before = standing(kept, policy)
    outcome, ticket = RenewalOutcome.KEPT, before.ticket
    try:
        if before.error and not _is_damaged(kept.cache):
            raise before.error
        if force or before.state is not TicketState.FRESH:
            with silent.asking(kept.principal, f"renew the ticket in {kept.cache}"):
                outcome, ticket = _replenish(kept, before.ticket)
    except KstreamError as error:
        return _failed(standing(kept, policy), error)
    if before.failures.count:
        forget(kept.cache)
    state = ticket_state(ticket, policy, datetime.now(UTC))
    return _report(TicketStanding(kept, state, ticket), outcome)


def _is_damaged(cache: Path) -> bool:
    """Whether it is a cache that was torn, which may be replaced: not a file of another kind, nor another's cache."""
    try:
        tickets.inspect(str(cache))
    except CredentialError:
        with suppress(OSError):
            return cache.is_file() and cache.read_bytes()[:2] in _BEGINNINGS
    return False


def _replenish(kept: KeptTicket, held: Ticket | None) -> tuple[RenewalOutcome, Ticket]:
    if kept.identity.keytab or _source_serves_longer(kept, held):
        return RenewalOutcome.ACQUIRED, tickets.log_in(kept.identity, kept.cache)
    return RenewalOutcome.RENEWED, tickets.renew(kept.principal, kept.cache)


def _source_serves_longer(kept: KeptTicket, held: Ticket | None) -> bool:
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


def _failed(now: TicketStanding, error: KstreamError) -> RenewalReport:
    failures = now.failures.another(datetime.now(UTC))
    remember(now.kept.cache, failures)
    report = _report(replace(now, failures=failures), RenewalOutcome.FAILED)
    return replace(report, error=str(error), retryable=error.retryable)


def _report(now: TicketStanding, outcome: RenewalOutcome) -> RenewalReport:
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


def _plain(value: Any) -> Any:
    return _PLAIN.get(type(value), lambda same: same)(value)


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    datetime: datetime.isoformat,
    RenewalOutcome: str,
    TicketState: str,
}
