"""Ticket caches that nobody else sees: acquired whole or not at all, private, and gone afterwards."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import gssapi
from gssapi.raw.misc import GSSError
from krb5 import Krb5Error

from airflow_kstream.clients.private import write_private
from airflow_kstream.model.errors import CredentialError, KstreamError, Unavailable
from airflow_kstream.model.identity import Identity


def acquire(identity: Identity, cache: Path) -> timedelta:
    """Put a ticket-granting ticket for `identity` into `cache`, and return how long it lives.

    From the keytab where there is one, else a copy of the identity's own cache. Written beside, checked, synced and
    renamed: a reader sees the old file or the whole new one. Raise CredentialError, leaving `cache` as it was.
    """
    fresh = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        _fill(identity, fresh)
        left = lifetime(fresh, identity.principal)
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(cache)
    finally:
        fresh.unlink(missing_ok=True)
    return left


def lifetime(cache: Path, principal: str) -> timedelta:
    """How long the cache's ticket still serves; CredentialError when it is expired, missing or another's."""
    try:
        # An expired cache is acquired without complaint; only its lifetime tells.
        seconds = _credentials(principal, {"ccache": f"FILE:{cache}"}).lifetime
    except GSSError as error:
        raise kerberos_error(error, tried=f"read the ticket in {cache}", principal=principal) from error
    return timedelta(seconds=seconds)


def _fill(identity: Identity, cache: Path) -> None:
    if identity.keytab:
        _login(identity.principal, Path(identity.keytab), cache)
        return
    source = Path((identity.ticket_cache or "").removeprefix("FILE:"))
    try:
        write_private(cache, source.read_bytes())
    except OSError as error:
        tried = f"copy the ticket cache {source}"
        raise CredentialError(error.strerror or str(error), tried=tried, principal=identity.principal) from error


def _login(principal: str, keytab: Path, cache: Path) -> None:
    tried = f"log in from keytab {keytab}"
    if not os.access(keytab, os.R_OK):
        reason = "it is not readable" if keytab.exists() else "it does not exist"
        raise CredentialError(f"{reason} for this process", tried=tried, principal=principal)
    try:
        # Asking for the lifetime is what makes the library go to the KDC.
        _ = _credentials(principal, {"client_keytab": f"FILE:{keytab}", "ccache": f"FILE:{cache}"}).lifetime
    except GSSError as error:
        raise kerberos_error(error, tried=tried, principal=principal) from error


def _credentials(principal: str, store: dict[bytes | str, bytes | str]) -> gssapi.Credentials:
    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    return gssapi.Credentials(name=name, usage="initiate", store=store)


def kerberos_error(error: GSSError | Krb5Error, **context: str) -> KstreamError:
    """Ours for what the Kerberos libraries raise: a KDC that is away can come back, a refusal stays one."""
    if isinstance(error, Krb5Error):
        code, words = error.err_code, str(error).rpartition(" ")[0]
    else:
        # The mechanism's own text; the major status only says that something failed.
        code = error.min_code
        words = "; ".join(error.get_all_statuses(code, False)) or str(error)
    kind = Unavailable if code & _ERROR_CODE in _KDC_AWAY else CredentialError
    return kind(words, **context)


_ERROR_CODE = 0xFFFFFFFF
# KRB5_KDC_UNREACH, KRB5_REALM_CANT_RESOLVE
_KDC_AWAY = {code & _ERROR_CODE for code in (-1765328228, -1765328164)}
