"""Which tickets of a cluster are to be kept fresh, as people write it down."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.durations import Duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.field_errors import field_errors
from airflow_kstream.model.identity import Identity, split_principal
from airflow_kstream.model.ticket import CacheKind, cache_file_name, split_cache_name
from airflow_kstream.policy.tickets.renewal import RenewalPolicy
from airflow_kstream.supervise.tickets.renewal import ManagedTicket


@dataclass(frozen=True, kw_only=True)
class PrincipalDeclaration:
    """A principal with the keytab or the ticket cache that it logs in with; `cache` is where its ticket is kept.

    The connection's own principal may be named without either, for its `cache` alone. Raises InvalidInput.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principal: str
    keytab: str | None = None
    ticket_cache: str | None = None
    cache: str | None = None

    def __post_init__(self) -> None:
        split_principal(self.principal)
        if not self.principal.isprintable():
            raise InvalidInput(f"principal is {self.principal!r}; allowed is what can be printed")
        if self.keytab and self.ticket_cache:
            raise InvalidInput(f"{self.principal} has both keytab and ticket_cache; allowed is one of them")
        if self.keytab:
            _absolute("keytab", self.keytab)
        if self.ticket_cache:
            split_cache_name(self.ticket_cache)
        if self.cache:
            self.cache_path()

    @property
    def identity(self) -> Identity | None:
        if not (self.keytab or self.ticket_cache):
            return None
        return Identity(self.principal, self.keytab, self.ticket_cache)

    def cache_path(self) -> Path | None:
        if not self.cache:
            return None
        kind, rest = split_cache_name(self.cache)
        if kind is not CacheKind.FILE:
            raise InvalidInput(f"cache is {self.cache!r}; allowed is a file, which every Java program can read")
        return _absolute("cache", rest)


@dataclass(frozen=True, kw_only=True)
class TicketDeclaration:
    """What `$KSTREAM_TICKETS/<connection id>.yaml` says. Raises InvalidInput.

    The connection's own principal is always kept, named or not. `folder` is where caches lie that have no `cache` of
    their own. `every` and `check_every` are the schedules of the DAG: of the renewals, and of the keytab checks.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principals: tuple[PrincipalDeclaration, ...] = ()
    folder: str | None = None
    renew_at: float = RenewalPolicy.renew_at
    alert_before: Duration = RenewalPolicy.alert_before
    every: Duration = timedelta(minutes=15)
    check_every: Duration = timedelta(days=1)

    def __post_init__(self) -> None:
        _distinct("principals names", (each.principal for each in self.principals))
        if self.folder is not None:
            _absolute("folder", self.folder)
        for name in ("every", "check_every"):
            if getattr(self, name) <= timedelta():
                raise InvalidInput(f"{name} is {getattr(self, name)}; allowed is more than 0")
        _ = self.policy

    @classmethod
    def from_mapping(cls, given: Mapping[str, object]) -> TicketDeclaration:
        """Raise InvalidInput that names each wrong field."""
        try:
            return TypeAdapter(TicketDeclaration).validate_python(dict(given))
        except ValidationError as error:
            fields, of_each = (
                ", ".join(kind.__dataclass_fields__) for kind in (TicketDeclaration, PrincipalDeclaration)
            )
            raise InvalidInput(
                f"{field_errors(error)}; the fields are {fields}; of each of the principals {of_each}"
            ) from None

    @classmethod
    def from_yaml(cls, text: str) -> TicketDeclaration:
        try:
            given = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InvalidInput(f"this is no YAML: {error}") from error
        if not isinstance(given, dict | None):
            raise InvalidInput("an order of tickets is a mapping of fields to values")
        return cls.from_mapping(given or {})

    def to_mapping(self) -> dict[str, Any]:
        """Plain data, which `from_mapping` takes."""
        durations = ("alert_before", "every", "check_every")
        return {
            "principals": [dict(_given(each)) for each in self.principals],
            **({"folder": self.folder} if self.folder else {}),
            "renew_at": self.renew_at,
            **{name: f"{getattr(self, name).total_seconds():.3f}s" for name in durations},
        }

    @property
    def policy(self) -> RenewalPolicy:
        return RenewalPolicy(self.renew_at, self.alert_before)


def declaration_of(cluster: str) -> TicketDeclaration:
    """The order for a connection or a cluster's file; an empty one where none is written down. Raise InvalidInput."""
    path = order_path(cluster)
    return read_order(path) if path else TicketDeclaration()


def order_path(cluster: str) -> Path | None:
    """Where its order is written down, None where there is none. Raise InvalidInput for a folder that is not there."""
    path = orders_folder()
    found = path / f"{_short(cluster)}.yaml" if path else None
    return found if found and found.exists() else None


def orders_folder() -> Path | None:
    """`$KSTREAM_TICKETS`, None where it is not set. Raise InvalidInput where it is no folder: it was meant to be."""
    named = os.environ.get("KSTREAM_TICKETS")
    if named and not Path(named).is_dir():
        raise InvalidInput(f"$KSTREAM_TICKETS is {named!r}; there is no such folder")
    return Path(named) if named else None


def read_order(path: Path) -> TicketDeclaration:
    """Raise InvalidInput that names the file and each wrong field."""
    try:
        return TicketDeclaration.from_yaml(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be read: {error}") from error
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}") from error


def kept_tickets(cluster: Cluster, declaration: TicketDeclaration) -> tuple[ManagedTicket, ...]:
    """Whose tickets are kept and where, the connection's own principal first. Raise InvalidInput."""
    named = {each.principal: each for each in declaration.principals}
    own = named.pop(cluster.watcher.principal, PrincipalDeclaration(principal=cluster.watcher.principal))
    folder = (Path(declaration.folder) if declaration.folder else _state_home()) / _folder_name(cluster.name)
    kept = tuple(_kept(each, cluster, folder) for each in (own, *named.values()))
    _distinct("several principals have the cache", (str(each.cache) for each in kept))
    return kept


def _kept(each: PrincipalDeclaration, cluster: Cluster, folder: Path) -> ManagedTicket:
    named = each.cache_path()
    cache = named or folder / cache_file_name(each.principal)
    return ManagedTicket(cluster.name, _identity(each, cluster), cache, in_our_folder=named is None)


def _identity(each: PrincipalDeclaration, cluster: Cluster) -> Identity:
    if each.identity:
        return each.identity
    if each.principal == cluster.watcher.principal:
        return replace(cluster.watcher, do_as=None)
    raise InvalidInput(f"{each.principal} needs one of keytab or ticket_cache")


def _state_home() -> Path:
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kstream" / "tickets"
    except RuntimeError:
        raise InvalidInput("this user has no home folder; name a `folder` for caches in the declaration") from None


def _folder_name(cluster: str) -> str:
    """As `_short`; files of one name in several folders are several clusters, whose tickets are not each other's."""
    if not _is_file(cluster):
        return _short(cluster)
    place = hashlib.sha256(os.fsencode(Path(cluster).resolve())).hexdigest()
    return f"{_short(cluster)}-{place[:8]}"


def _short(cluster: str) -> str:
    """The name of a cluster, or that of its file, as one part of a path: never "." or ".."."""
    name = Path(cluster).stem if _is_file(cluster) else cluster
    return quote(name, safe="") if name.strip(".") else quote(name, safe="").replace(".", "%2E")


def _is_file(cluster: str) -> bool:
    return cluster.endswith((".yaml", ".yml"))


def _absolute(field: str, given: str) -> Path:
    if not given.startswith("/") or "\0" in given:
        raise InvalidInput(f"{field} is {given!r}; allowed is an absolute path")
    return Path(given)


def _distinct(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"{what} {', '.join(twice)} more than once")


def _given(each: PrincipalDeclaration) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in vars(each).items() if value is not None)
