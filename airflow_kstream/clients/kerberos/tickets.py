"""Private ticket caches of libkrb5: acquired completely or not at all, renewed, inspected, and read as values.

Krb5Error passes through unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache as remembered
from pathlib import Path
from threading import local

from airflow_kstream.clients.kerberos.krb5_errors import TICKET_EXPIRED, error_number, kerberos_error
from airflow_kstream.clients.lazy import krb5
from airflow_kstream.clients.local.private import replacing, write_private
from airflow_kstream.clients.local.regular_files import is_special
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.formats.ticket import ticket_key
from airflow_kstream.model.kerberos.identity import CacheKind, Identity, split_cache_name
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


def write_cache(context: krb5.Context, name: str, owner: krb5.Principal, tickets: Iterator[krb5.Creds]) -> None:
    """Write the cache in place, with these tickets and nothing else."""
    cache = krb5.cc_resolve(context, name.encode(errors="surrogateescape"))
    krb5.cc_initialize(context, cache, owner)
    for ticket in tickets:
        krb5.cc_store_cred(context, cache, ticket)


def copy_cache(context: krb5.Context, source: str, target: str) -> None:
    """Copy all of the source, including its settings; libkrb5's lock guards against writers in place."""
    cache = krb5.cc_resolve(context, source.encode(errors="surrogateescape"))
    write_cache(context, target, krb5.cc_get_principal(context, cache), iter(cache))


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


_MOMENT = "%Y-%m-%d %H:%M:%S %Z"
_A_CACHE_S_BYTES = 4096
# A cache in libkrb5's format 3 or 4 begins so.
_BEGINNINGS = {b"\x05\x03", b"\x05\x04"}
# What libkrb5 only calls a bad format.
_NO_CACHES = {
    b"": "it is empty: no login has written it, or its disk was full. Write it with kinit -c FILE, or give a keytab",
    b"\x05\x02": "it is a keytab, not a ticket cache: give it as the keytab",
}
_GET_ANOTHER = "Get another ticket with kinit, or give a keytab"
_UNREADABLE_BY_JAVA = (
    "a {kind} cache is kept by the system and is not a file, so Hadoop's and Spark's Java programs can't read it; "
    "give a keytab, or a FILE cache (kinit -c FILE:/path)"
)


def acquire(identity: Identity, cache: Path) -> timedelta:
    """Put a ticket-granting ticket for `identity` into `cache`, and return its remaining lifetime: see `log_in`."""
    return log_in(identity, cache).remaining(datetime.now(UTC))


def log_in(identity: Identity, cache: Path) -> Ticket:
    """Put a ticket-granting ticket for `identity` into `cache`, and return it.

    The ticket comes from the keytab if there is one, else from a copy of the identity's own cache. It is written to
    another file, checked, synced and renamed: a reader sees the old file or the complete new one, even if several
    processes acquire at once. An error leaves `cache` as it was. Raises CredentialError: when there is no good ticket.
    Raises Unavailable: when no KDC answers.
    """
    principal, source = identity.principal, identity.keytab or identity.ticket_cache or ""
    tried = f"log in from keytab {source}" if identity.keytab else f"copy the ticket cache {source}"
    with _replaced(cache, principal) as fresh, _mapped(tried, principal):
        if identity.keytab:
            _require_keytab(Path(identity.keytab), tried, principal)
            _login(principal, Path(identity.keytab), fresh)
        else:
            _copy(source, fresh)
        return _serving(granting_ticket(fresh, principal, tried), tried, principal)


def renew(held: Ticket, cache: Path) -> Ticket:
    """Exchange the ticket-granting ticket that `cache` holds for one that lives as long again, by its renewability.

    `held` is what the caller read there: it tells what is to be renewed and what is gained, and libkrb5 reads the cache
    again for the keys. It writes as `log_in` does. Raises CredentialError: when the ticket is not renewable, expired,
    at the end of its renewals, or no longer there. Raises Unavailable: when no KDC answers.
    """
    tried, principal = f"renew the ticket in {cache}", held.client
    _require_renewable(held, tried, principal)
    with _replaced(cache, principal) as fresh, _mapped(tried, principal):
        try:
            _renew_into(fresh, cache, principal)
        except krb5.Krb5Error as error:
            if error_number(error) == TICKET_EXPIRED:
                raise _too_late(held, tried, principal) from error
            raise
        renewed = granting_ticket(fresh, principal, tried)
        _require_gain(held, renewed, tried, principal)
        return renewed


def inspect(name: str) -> TicketCache:
    """Read a cache: "FILE:/path", a path, "DIR:/folder" (its primary one), "DIR::/folder/tkt", "MEMORY:name".

    Raises CredentialError: when it is missing, damaged, unreadable or of a kind that Java can't read.
    """
    kind, rest = split_cache_name(name)
    tried = f"read the ticket cache {name}"
    if not kind.ours:
        raise CredentialError(_UNREADABLE_BY_JAVA.format(kind=kind), tried=tried)
    if kind is CacheKind.FILE or rest.startswith(":"):
        _require_file(Path(rest.removeprefix(":")), tried)
    elif kind is CacheKind.DIR and not Path(rest).is_dir():
        # libkrb5 would create the folder.
        raise CredentialError("there is no such folder", tried=tried)
    try:
        return read_cache(f"{kind}:{rest}")
    except krb5.Krb5Error as error:
        raise kerberos_error(error, tried=tried) from error
    except CredentialError as error:
        raise CredentialError(f"it is damaged: {error.message}", tried=tried) from error


def granting_ticket(path: Path, principal: str, tried: str) -> Ticket:
    """Read the principal's ticket-granting ticket, even if expired. Raises CredentialError: when it is not there."""
    cache = inspect(str(path))
    if cache.principal != principal:
        raise CredentialError(f"it is a cache of {cache.principal}", tried=tried, principal=principal)
    if cache.granting is None:
        raise CredentialError("it holds no ticket-granting ticket", tried=tried, principal=principal)
    return cache.granting


def members(name: str) -> tuple[str, ...]:
    """Return the names of the caches that `name` stands for: all in a "DIR:/folder" or a folder's path, else itself.

    In a folder those are libkrb5's own (tkt...) and all other files that begin like a cache. If it has none, those in
    its subfolders count: a declaration's folder has one for each cluster. Raises CredentialError: when there is none.
    """
    kind, rest = split_cache_name(name)
    if kind not in {CacheKind.DIR, CacheKind.FILE} or rest.startswith(":") or not Path(rest).is_dir():
        return (name,)
    tried = f"read the folder {rest}"
    try:
        names = _caches(Path(rest).iterdir()) or _caches(Path(rest).glob("*/*"))
    except OSError as error:
        raise CredentialError(error.strerror or str(error), tried=tried) from error
    if not names:
        raise CredentialError("there is no ticket cache in it", tried=tried)
    return names


def begins_like_a_cache(file: Path) -> bool:
    """Return True if the file begins as libkrb5's caches do; False also if it can't be read."""
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(2) in _BEGINNINGS
    return False


def _caches(files: Iterable[Path]) -> tuple[str, ...]:
    return tuple(_member(file) for file in sorted(files) if _is_member(file))


def _member(file: Path) -> str:
    return f"DIR::{file}" if file.name.startswith("tkt") else f"FILE:{file}"


def _is_member(file: Path) -> bool:
    """Return True for anything that may be a cache, even a damaged one, but not if hidden: it may be half written."""
    if file.name.startswith(".") or not file.is_file():
        return False
    if file.name.startswith("tkt") or file.suffix == ".ccache":
        return True
    return begins_like_a_cache(file)


def _serving(held: Ticket, tried: str, principal: str) -> Ticket:
    if held.expiry <= datetime.now(UTC):
        raise CredentialError(f"its ticket expired at {held.expiry:{_MOMENT}}", tried=tried, principal=principal)
    return held


def _require_renewable(held: Ticket, tried: str, principal: str) -> None:
    if held.renew_until is None:
        why = f"it is not renewable: ask for a renewable one (kinit -r). {_GET_ANOTHER}"
        raise CredentialError(why, tried=tried, principal=principal)
    if datetime.now(UTC) >= held.renew_until:
        raise _too_late(held, tried, principal)


def _require_gain(held: Ticket, renewed: Ticket, tried: str, principal: str) -> None:
    """Refuse a renewal without gain: near their end the KDC grants ever shorter lifetimes, and nobody would notice."""
    if held.renew_until and held.renew_until <= renewed.expiry <= held.expiry:
        why = f"no renewal extends it beyond its end at {held.expiry:{_MOMENT}}. {_GET_ANOTHER}"
        raise CredentialError(why, tried=tried, principal=principal)


def _too_late(held: Ticket, tried: str, principal: str) -> CredentialError:
    past = held.renew_until is not None and datetime.now(UTC) >= held.renew_until
    end, what = (held.renew_until, "reached the end of its renewals") if past else (held.expiry, "expired")
    return CredentialError(f"it {what} at {end:{_MOMENT}}. {_GET_ANOTHER}", tried=tried, principal=principal)


def _require_keytab(keytab: Path, tried: str, principal: str) -> None:
    if is_special(keytab):
        raise CredentialError("it is not a regular file", tried=tried, principal=principal)
    if not os.access(keytab, os.R_OK):
        why = "this process may not read it" if keytab.exists() else "there is no such file"
        raise CredentialError(why, tried=tried, principal=principal)


def _login(principal: str, keytab: Path, cache: Path) -> None:
    context = krb5.init_context()
    client = krb5.parse_name_flags(context, principal.encode())
    keys = krb5.kt_resolve(context, b"FILE:" + os.fsencode(keytab))
    ticket = krb5.get_init_creds_keytab(context, client, krb5.get_init_creds_opt_alloc(context), keys)
    with _written(cache):
        write_cache(context, f"FILE:{cache}", client, iter([ticket]))


def _renew_into(fresh: Path, cache: Path, principal: str) -> None:
    context = krb5.init_context()
    owner = krb5.parse_name_flags(context, principal.encode())
    renewed = krb5.get_renewed_creds(context, owner, krb5.cc_resolve(context, b"FILE:" + os.fsencode(cache)))
    with _written(fresh):
        write_cache(context, f"FILE:{fresh}", owner, iter([renewed]))


def _copy(source: str, cache: Path) -> None:
    kind, rest = split_cache_name(source)
    inspect(source)
    with _written(cache):
        copy_cache(krb5.init_context(), f"{kind}:{rest}", f"FILE:{cache}")


@contextmanager
def _replaced(cache: Path, principal: str) -> Iterator[Path]:
    try:
        with replacing(cache) as fresh:
            yield fresh
    except OSError as error:
        words = f"can't write to the folder {cache.parent}: {error.strerror or error}"
        raise CredentialError(words, tried=f"write the ticket cache {cache}", principal=principal) from error


@contextmanager
def _written(cache: Path) -> Iterator[None]:
    """After a failed write, write again without libkrb5, which hides the reason: the system's error gives it."""
    try:
        yield
    except krb5.Krb5Error:
        cache.unlink(missing_ok=True)
        write_private(cache, bytes(_A_CACHE_S_BYTES))
        raise


@contextmanager
def _mapped(tried: str, principal: str) -> Iterator[None]:
    try:
        yield
    except krb5.Krb5Error as error:
        raise kerberos_error(error, tried=tried, principal=principal) from error


def _require_file(path: Path, tried: str) -> None:
    try:
        # Opening a pipe would block.
        if not path.is_file():
            raise CredentialError("there is no such file", tried=tried)
        with path.open("rb") as file:
            beginning = file.read(2)
    except OSError as error:
        raise CredentialError(error.strerror or str(error), tried=tried) from error
    if beginning in _NO_CACHES:
        raise CredentialError(_NO_CACHES[beginning], tried=tried)
