"""Kerberos tickets as a cache holds them: client, server and lifetime; never the session keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from airflow_kstream.model.kerberos.identity import CacheKind, split_cache_name, split_principal
from airflow_kstream.model.plain import fields_of


@dataclass(frozen=True)
class Ticket:
    """One ticket. `flags` are named as in RFC 4120, 5.3; `kvno` and `enctype` are those of the server's key that seals
    it, None and empty if the ticket does not say. `renew_until` is None if it is not renewable. Times are the KDC's.
    """

    client: str
    server: str
    start: datetime
    expiry: datetime
    renew_until: datetime | None
    flags: frozenset[str]
    enctype: str
    kvno: int | None

    @property
    def life(self) -> timedelta:
        return self.expiry - self.start

    def remaining(self, now: datetime) -> timedelta:
        """Return the time left until its expiry; negative once it has expired."""
        return self.expiry - now

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data, times in ISO 8601."""
        return {**fields_of(self), "seconds_left": round(self.remaining(now).total_seconds())}


@dataclass(frozen=True)
class TicketCache:
    """A ticket cache. `name` is as the Kerberos libraries write it, "FILE:/path"; `principal` is its owner."""

    name: str
    principal: str
    tickets: tuple[Ticket, ...]

    @property
    def kind(self) -> CacheKind:
        return split_cache_name(self.name)[0]

    @property
    def granting(self) -> Ticket | None:
        """Return the ticket-granting ticket of the principal's own realm; of several, the one that is valid longest."""
        realm = self.principal.rpartition("@")[2]
        own = [
            ticket
            for ticket in self.tickets
            if ticket.client == self.principal and ticket.server == f"krbtgt/{realm}@{realm}"
        ]
        return max(own, key=lambda ticket: ticket.expiry, default=None)

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data, every ticket of the cache included."""
        tickets = [ticket.to_json(now) for ticket in self.tickets]
        return {"cache": self.name, "kind": self.kind.value, "principal": self.principal, "tickets": tickets}


def cache_file_name(principal: str) -> str:
    """Return a file name that no other principal shares. Raises InvalidInput: when it is not a principal."""
    split_principal(principal)
    return f"{quote(principal, safe='@')}.ccache"
