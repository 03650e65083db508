"""Ticket caches of libkrb5 as values and back. Krb5Error passes through unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache as remembered
from threading import local

from airflow_kstream.clients.lazy import krb5
from airflow_kstream.model.formats.ticket import ticket_key
from airflow_kstream.model.kerberos.ticket import Ticket, TicketCache

# A cache's own settings look like tickets of this realm.
_SETTINGS = b"X-CACHECONF:"
_OF_THIS_THREAD = local()


def read_cache(name: str) -> TicketCache:
    """Read a cache. Raises CredentialError: when one of its tickets is malformed."""
    context = _context_to_read_with()
    cache = krb5.cc_resolve(context, name.encode(errors="surrogateescape"))
    # Without a principal there is no cache; this call raises the reason.
    owner = _text(krb5.unparse_name_flags(context, krb5.cc_get_principal(context, cache)))
    return TicketCache(name, owner, tuple(_ticket(context, ticket) for ticket in _tickets(cache)))


def _context_to_read_with() -> krb5.Context:
    """Return the thread's context: making one reads krb5.conf and costs more than reading a cache.

    Use it only for reading. A login leaves the KDC's clock in its context, which must not affect other realms.
    """
    if not hasattr(_OF_THIS_THREAD, "context"):
        _OF_THIS_THREAD.context = krb5.init_context()
    context: krb5.Context = _OF_THIS_THREAD.context
    return context


def store(context: krb5.Context, name: str, owner: krb5.Principal, tickets: Iterator[krb5.Creds]) -> None:
    """Write the cache in place, with these tickets and nothing else."""
    cache = krb5.cc_resolve(context, name.encode(errors="surrogateescape"))
    krb5.cc_initialize(context, cache, owner)
    for ticket in tickets:
        krb5.cc_store_cred(context, cache, ticket)


def copy(context: krb5.Context, source: str, target: str) -> None:
    """Copy all of the source, including its settings; libkrb5's lock guards against writers in place."""
    cache = krb5.cc_resolve(context, source.encode(errors="surrogateescape"))
    store(context, target, krb5.cc_get_principal(context, cache), iter(cache))


def _tickets(cache: krb5.CCache) -> Iterator[krb5.Creds]:
    return (ticket for ticket in cache if ticket.server.realm != _SETTINGS)


def _ticket(context: krb5.Context, credential: krb5.Creds) -> Ticket:
    times, sealed = credential.times, ticket_key(credential.ticket)
    flags = _flags(int(credential.ticket_flags))
    return Ticket(
        client=_text(krb5.unparse_name_flags(context, credential.client)),
        server=_text(krb5.unparse_name_flags(context, credential.server)),
        # A ticket without a start time is valid from its issue.
        start=_moment(times.starttime or times.authtime),
        expiry=_moment(times.endtime),
        renew_until=_moment(times.renew_till) if "renewable" in flags else None,
        flags=flags,
        enctype=_enctype(sealed.enctype),
        kvno=sealed.kvno,
    )


def _moment(seconds: int) -> datetime:
    # libkrb5 counts seconds in 32 unsigned bits, up to the year 2106.
    return datetime.fromtimestamp(seconds & 0xFFFFFFFF, UTC)


@remembered
def _flags(bits: int) -> frozenset[str]:
    # Only those that have a name: a damaged cache contains others.
    return frozenset((flag.name or "").replace("_", "-") for flag in krb5.TicketFlags if flag & bits)


@remembered
def _enctype(number: int) -> str:
    try:
        return krb5.enctype_to_name(number)
    except (ValueError, OverflowError, krb5.Krb5Error):
        return f"enctype {number}"


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
