"""Ticket caches that nobody else sees: acquired whole or not at all, private, and gone afterwards."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import gssapi
from gssapi.raw.misc import GSSError

from airflow_kstream.clients.private import write_private
from airflow_kstream.model.errors import CredentialError
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
        raise CredentialError(_words(error), tried=f"read the ticket in {cache}", principal=principal) from error
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
        raise CredentialError(_words(error), tried=tried, principal=principal) from error


def _credentials(principal: str, store: dict[bytes | str, bytes | str]) -> gssapi.Credentials:
    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    return gssapi.Credentials(name=name, usage="initiate", store=store)


def _words(error: GSSError) -> str:
    """The mechanism's own text; the major status only says that something failed."""
    minor = error.get_all_statuses(error.min_code, False)
    return "; ".join(minor) or str(error)
