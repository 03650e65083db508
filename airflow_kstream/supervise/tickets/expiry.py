"""The ticket caches of this host whose ticket is missing, has expired, or is about to expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from annotated_types import MinLen
from pydantic import ConfigDict

from airflow_kstream.clients.kerberos.tickets import inspect
from airflow_kstream.model.declared import read, written
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.fields import Principal, TicketCacheName, Wait
from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.model.kerberos.expiry import ExpiryCheck
from airflow_kstream.model.kerberos.identity import split_cache_name
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.policy.tickets import TicketState, ticket_state

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class WatchedCache:
    """A cache, and the principal whose ticket it should hold.

    Raises InvalidInput: when the cache is of a kind that other processes can't read.
    """

    __pydantic_config__ = _STRICT

    principal: Principal
    cache: TicketCacheName

    def __post_init__(self) -> None:
        kind, _ = split_cache_name(self.cache)
        if not kind.java_reads:
            raise InvalidInput(f"cache is {self.cache!r}; only files can be watched, and a {kind} cache is not one")


@dataclass(frozen=True)
class TicketExpiryCondition:
    """The caches to watch, and how long before its expiry a ticket is reported."""

    __pydantic_config__ = _STRICT

    caches: Annotated[tuple[WatchedCache, ...], MinLen(1)]
    within: Wait = timedelta(hours=1)

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> TicketExpiryCondition:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(TicketExpiryCondition, fields)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, which `from_mapping` takes."""
        return dict(written(self))


@dataclass(frozen=True)
class CheckedTicket:
    """The content of one cache; `error` is why it could not be read, and then the ticket counts as missing."""

    watched: WatchedCache
    ticket: Ticket | None
    error: str = ""

    def remaining(self, now: datetime) -> timedelta:
        return self.ticket.remaining(now) if self.ticket else timedelta.min

    def to_json(self, now: datetime) -> dict[str, Any]:
        ticket = self.ticket
        state: TicketState = ticket_state(ticket, RenewalPolicy(), now)
        return {
            "principal": self.watched.principal,
            "cache": self.watched.cache,
            "state": state.value,
            "expiry": ticket.expiry.isoformat() if ticket else None,
            "remaining_seconds": round(ticket.remaining(now).total_seconds(), 3) if ticket else None,
            "error": self.error,
        }


TicketCheck = ExpiryCheck[CheckedTicket]


def check(awaited: TicketExpiryCondition) -> TicketCheck:
    """Read each cache as it is now. No request goes to any server, and no ticket is renewed."""
    checked = [_checked(watched) for watched in awaited.caches]
    return TicketCheck("tickets", "caches of this host", awaited.within, datetime.now(UTC), checked)


def _checked(watched: WatchedCache) -> CheckedTicket:
    try:
        cache = inspect(watched.cache)
    except KstreamError as error:
        return CheckedTicket(watched, None, str(error))
    if cache.principal != watched.principal:
        return CheckedTicket(watched, None, f"it is the cache of {cache.principal}")
    return CheckedTicket(watched, cache.granting)
