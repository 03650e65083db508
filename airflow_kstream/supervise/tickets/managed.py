"""The tickets of a cluster that are kept fresh, all of its declaration or one principal's; and the one reading of a
cache that decides what a renewal may do with the file.

The consecutive failures of a renewal and their cause are kept in a private file beside the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import replacing
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.kerberos.declarations import (
    PrincipalDeclaration,
    TicketDeclaration,
    require_distinct,
)
from airflow_kstream.model.kerberos.identity import Identity, is_principal, split_cache_name, split_principal
from airflow_kstream.model.kerberos.ticket import Ticket, cache_file_name


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


def declaration_of(cluster: str, folder: Path | None) -> TicketDeclaration:
    """Read the declaration for a connection or a cluster's file; an empty declaration if there is no file.

    Raises InvalidInput: when it can't be read, or a field is wrong.
    """
    path = declaration_path(cluster, folder) if folder else None
    return read_declaration(path) if path else TicketDeclaration()


def declaration_path(cluster: str, folder: Path) -> Path | None:
    """Return the file in this folder that has the cluster's name; None if there is none."""
    path = folder / f"{_short(cluster)}.yaml"
    return path if path.exists() else None


def read_declaration(path: Path) -> TicketDeclaration:
    """Read a file. Raises InvalidInput: when a field is wrong; the error names the file and each field."""
    text = read_text(path)
    try:
        return TicketDeclaration.from_yaml(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}") from error


def kept_tickets(cluster: Cluster, declaration: TicketDeclaration) -> tuple[ManagedTicket, ...]:
    """Return the tickets to keep and their files, the connection's own principal first.

    Raises InvalidInput: when a principal has no keytab or cache to log in with, or two share a cache.
    """
    named = {declared.principal: declared for declared in declaration.principals}
    own = named.pop(cluster.watcher.principal, PrincipalDeclaration(principal=cluster.watcher.principal))
    folder = (Path(declaration.folder) if declaration.folder else _state_home()) / _folder_name(cluster.name)
    kept = tuple(_kept(declared, cluster, folder) for declared in (own, *named.values()))
    require_distinct("several principals have the cache", (os.path.normpath(ticket.cache) for ticket in kept))
    return kept


def _kept(declared: PrincipalDeclaration, cluster: Cluster, folder: Path) -> ManagedTicket:
    named = Path(split_cache_name(declared.cache)[1]) if declared.cache else None
    cache = named or folder / cache_file_name(declared.principal)
    return ManagedTicket(cluster.name, _identity(declared, cluster), cache, in_our_folder=named is None)


def _identity(declared: PrincipalDeclaration, cluster: Cluster) -> Identity:
    if declared.identity:
        return declared.identity
    if declared.principal == cluster.watcher.principal:
        return replace(cluster.watcher, do_as=None)
    raise InvalidInput(f"{declared.principal} needs one of keytab or ticket_cache")


def _state_home() -> Path:
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kstream" / "tickets"
    except RuntimeError:
        raise InvalidInput("this user has no home folder; name a `folder` for caches in the declaration") from None


def _folder_name(cluster: str) -> str:
    """Return `_short`, distinct by folder: files of one name in several folders are several clusters."""
    if not _is_file(cluster):
        return _short(cluster)
    place = hashlib.sha256(os.fsencode(Path(cluster).resolve())).hexdigest()
    return f"{_short(cluster)}-{place[:8]}"


def _short(cluster: str) -> str:
    """Return the name of a cluster or of its file as one part of a path: never "." or ".."."""
    name = Path(cluster).stem if _is_file(cluster) else cluster
    return quote(name, safe="") if name.strip(".") else quote(name, safe="").replace(".", "%2E")


def _is_file(cluster: str) -> bool:
    return cluster.endswith((".yaml", ".yml"))


@dataclass(frozen=True)
class TicketSelection:
    """One principal, with the keytab and cache that the declaration lacks or that override it.

    Without a principal, a keytab or cache belongs to the connection's own; with no field at all, all are selected.

    Raises InvalidInput: when it is not a principal, or a path depends on where the process was started.
    """

    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.principal and not is_principal(self.principal):
            raise InvalidInput(f"principal is {self.principal!r}; allowed is primary[/instance]@REALM")
        for name in ("keytab", "cache"):
            path = getattr(self, name)
            if path and not path.removeprefix("FILE:").startswith("/"):
                raise InvalidInput(f"{name} is {path!r}; allowed is an absolute path")


def selected(cluster: Cluster, declaration: TicketDeclaration, selection: TicketSelection) -> tuple[ManagedTicket, ...]:
    """Return all declared tickets, or the selected one.

    Raises InvalidInput: when the principal is not declared and has neither keytab nor cache.
    """
    if selection == TicketSelection():
        return kept_tickets(cluster, declaration)
    return (select_one(cluster, declaration, selection),)


def select_one(cluster: Cluster, declaration: TicketDeclaration, selection: TicketSelection) -> ManagedTicket:
    """Return one ticket as `selected` does; without a principal, that of the connection's own."""
    principal = selection.principal or cluster.watcher.principal
    kept = _known(cluster, declaration).get(principal) or _stranger(cluster, declaration, principal, selection)
    if selection.keytab:
        kept = replace(kept, identity=Identity(principal, keytab=selection.keytab.removeprefix("FILE:")))
    if selection.cache:
        kept = replace(kept, cache=Path(selection.cache.removeprefix("FILE:")), in_our_folder=False)
    return kept


def _known(cluster: Cluster, declaration: TicketDeclaration) -> dict[str, ManagedTicket]:
    return {ticket.principal: ticket for ticket in kept_tickets(cluster, declaration)}


def _stranger(
    cluster: Cluster, declaration: TicketDeclaration, principal: str, selection: TicketSelection
) -> ManagedTicket:
    proof = {"keytab": selection.keytab} if selection.keytab else {"ticket_cache": selection.cache}
    if not (selection.keytab or selection.cache):
        known = ", ".join(_known(cluster, declaration))
        raise InvalidInput(f"{principal} is not among {known}, whom {cluster.name} knows; give its keytab or cache")
    fields = declaration.to_mapping()
    principals = [*fields.get("principals", ()), {"principal": principal, **proof}]
    return _known(cluster, TicketDeclaration.from_mapping({**fields, "principals": principals}))[principal]


@dataclass(frozen=True)
class Failures:
    """Consecutive failures, the time of the first, and the reason of the last."""

    count: int = 0
    since: datetime | None = None
    why: str = ""

    def another(self, now: datetime, why: str) -> Failures:
        return Failures(self.count + 1, self.since or now, why)


NO_FAILURES = Failures()


def recall(cache: Path) -> Failures:
    """Read the failures; none if there is no file or it makes no sense: the count is a help, not a requirement."""
    try:
        fields = json.loads(_file(cache).read_text())
        return Failures(int(fields["failures"]), datetime.fromisoformat(fields["since"]), str(fields.get("why", "")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return NO_FAILURES


def remember(cache: Path, failures: Failures) -> bool:
    """Write the failures. Return False if the folder is not writable, a common cause: the count then starts again."""
    since = failures.since.isoformat() if failures.since else None
    try:
        with replacing(_file(cache)) as file:
            file.write_text(json.dumps({"failures": failures.count, "since": since, "why": failures.why}))
    except OSError:
        return False
    return True


def forget(cache: Path) -> None:
    with suppress(OSError):
        _file(cache).unlink(missing_ok=True)


def _file(cache: Path) -> Path:
    return cache.with_name(f".{cache.name}.failures")
