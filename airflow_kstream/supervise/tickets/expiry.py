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
from airflow_kstream.model.ticket import Ticket, split_cache_name
from airflow_kstream.policy.tickets.renewal import RenewalPolicy, TicketState, ticket_state

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
            raise InvalidInput(f"cache is {self.cache!r}; what is watched is a file, and a {kind} cache is none")


@dataclass(frozen=True)
class TicketExpiryCondition:
    """The caches to watch, and how long before its expiry a ticket is reported."""

    __pydantic_config__ = _STRICT

    caches: Annotated[tuple[WatchedCache, ...], MinLen(1)]
    within: Wait = timedelta(hours=1)

    @classmethod
    def from_mapping(cls, given: Mapping[str, object]) -> TicketExpiryCondition:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(TicketExpiryCondition, given)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, which `from_mapping` takes."""
        return dict(written(self))


@dataclass(frozen=True)
class TicketSeen:
    """The content of one cache; `error` is why it could not be read, and then the ticket counts as missing."""

    watched: WatchedCache
    ticket: Ticket | None
    error: str = ""

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


@dataclass(frozen=True)
class TicketLook:
    """One look by this host's clock."""

    awaited: TicketExpiryCondition
    now: datetime
    seen: tuple[TicketSeen, ...]

    @property
    def expiring(self) -> tuple[TicketSeen, ...]:
        """Return the tickets that expire within `within`, the most urgent first."""
        found = [seen for seen in self.seen if self._left(seen) <= self.awaited.within]
        return tuple(sorted(found, key=self._left))

    def report(self, rows: int = 20) -> dict[str, Any]:
        """Return plain data of bounded size."""
        return {
            "at": self.now.isoformat(),
            "tickets": len(self.seen),
            "expiring": [seen.to_json(self.now) for seen in self.expiring[:rows]],
        }

    def _left(self, seen: TicketSeen) -> timedelta:
        return seen.ticket.remaining(self.now) if seen.ticket else timedelta.min


def look(awaited: TicketExpiryCondition) -> TicketLook:
    """Read each cache as it is now. No request goes to any server, and no ticket is renewed."""
    return TicketLook(awaited, datetime.now(UTC), tuple(_seen(watched) for watched in awaited.caches))


def _seen(watched: WatchedCache) -> TicketSeen:
    try:
        cache = inspect(watched.cache)
    except KstreamError as error:
        return TicketSeen(watched, None, str(error))
    if cache.principal != watched.principal:
        return TicketSeen(watched, None, f"it is the cache of {cache.principal}")
    return TicketSeen(watched, cache.granting)
