"""A ticket that is kept fresh, and the one reading of its cache that decides what a renewal may do with the file."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.kerberos.identity import Identity, split_principal
from airflow_kstream.model.kerberos.ticket import Ticket


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

    @property
    def realm(self) -> str:
        return split_principal(self.principal)[2]


class CacheCondition(StrEnum):
    """The condition of a cache file. A renewal writes it unless it is FOREIGN.

    DAMAGED is a torn cache, or any file in our own folder that is none. FOREIGN is another principal's cache, a file of
    another kind that somebody named, probably by mistake, and whatever this process can't reach.
    """

    OK = "ok"
    MISSING = "missing"
    DAMAGED = "damaged"
    FOREIGN = "foreign"


@dataclass(frozen=True)
class CacheState:
    """The state of a cache file, by one reading. `error` says what is wrong with a damaged or foreign one."""

    condition: CacheCondition
    ticket: Ticket | None = None
    error: CredentialError | None = None


def read_cache(kept: ManagedTicket) -> CacheState:
    """Read the file and classify it. Raises nothing, sends no request and changes nothing."""
    tried = f"read the ticket cache {kept.cache}"
    try:
        status = kept.cache.stat()
    except FileNotFoundError:
        return CacheState(CacheCondition.MISSING)
    except OSError as error:
        return _foreign(error.strerror or str(error), tried, kept)
    try:
        cache = tickets.inspect(str(kept.cache))
    except CredentialError as error:
        return _unreadable(error, status, kept)
    if cache.principal != kept.principal:
        remedy = "delete it" if kept.in_our_folder else "name another file for one of them"
        return _foreign(f"it is a cache of {cache.principal}: {remedy}", tried, kept)
    return CacheState(CacheCondition.OK, cache.granting)


def _foreign(why: str, tried: str, kept: ManagedTicket) -> CacheState:
    error = CredentialError(why, tried=tried, principal=kept.principal)
    return CacheState(CacheCondition.FOREIGN, error=error)


def _unreadable(error: CredentialError, status: os.stat_result, kept: ManagedTicket) -> CacheState:
    """Classify a file that is not a readable cache; if it is a regular file, its error also says what becomes of it."""
    regular = stat.S_ISREG(status.st_mode)
    torn = status.st_size == 0 or tickets.begins_like_a_cache(kept.cache)
    condition = CacheCondition.DAMAGED if regular and (kept.in_our_folder or torn) else CacheCondition.FOREIGN
    if not regular or not os.access(kept.cache, os.R_OK):
        return CacheState(condition, error=error)
    why = f"{error.message.rstrip('.')}; {_FATES[condition]}"
    return CacheState(condition, error=CredentialError(why, tried=error.tried, principal=kept.principal))


_FATES = {
    CacheCondition.DAMAGED: "the next renewal replaces it",
    CacheCondition.FOREIGN: ("it is left as it is, because it was named as the cache: delete it, or name another file"),
}
