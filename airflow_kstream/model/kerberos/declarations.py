"""The tickets of a cluster that are kept fresh, and the tokens that are watched, as people declare them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

from annotated_types import MaxLen
from pydantic import ConfigDict

from airflow_kstream.model.airflow_options import AirflowOptions, require_notifiers
from airflow_kstream.model.declared import read, written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import (
    ApplicationId,
    CacheFile,
    LocalPath,
    Principal,
    Schedule,
    Share,
    TicketCacheName,
    TokenFile,
    UserName,
    Wait,
    Word,
)
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.yaml_text import read_mapping

_SOURCES = ("users", "tags", "applications", "files")
_LARGEST_ALERT_SHARE = 4


@dataclass(frozen=True)
class RenewalPolicy:
    """The thresholds of a renewal. `renew_at` is the share of a ticket's life after which it is due.

    A ticket is urgent from `alert_before` its expiry on, but only in the last quarter of its life: a ticket of ten
    minutes would otherwise be urgent from the start. Raises InvalidInput: when a value is out of range.
    """

    renew_at: float = 0.5
    alert_before: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if not 0 < self.renew_at < 1:
            raise InvalidInput(f"renew_at is {self.renew_at}; allowed is a share between 0 and 1")
        if self.alert_before < timedelta():
            raise InvalidInput(f"alert_before is {self.alert_before}; allowed is 0 or more")

    def due(self, ticket: Ticket) -> datetime:
        """Return when the ticket is due for renewal, never later than when it is urgent."""
        return min(ticket.start + ticket.life * self.renew_at, self.urgent(ticket))

    def urgent(self, ticket: Ticket) -> datetime:
        return ticket.expiry - min(self.alert_before, ticket.life / _LARGEST_ALERT_SHARE)


@dataclass(frozen=True, kw_only=True)
class PrincipalDeclaration:
    """A principal with the `keytab` or the `ticket_cache` that it logs in with; `cache` is where its ticket is kept.

    The connection's own principal may be named without either, for its `cache` alone.

    Raises InvalidInput: when a field is wrong.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principal: Principal
    keytab: LocalPath | None = None
    ticket_cache: TicketCacheName | None = None
    cache: CacheFile | None = None

    def __post_init__(self) -> None:
        if self.keytab and self.ticket_cache:
            raise InvalidInput(f"{self.principal} has both keytab and ticket_cache; allowed is one of them")

    @property
    def identity(self) -> Identity | None:
        if not (self.keytab or self.ticket_cache):
            return None
        return Identity(self.principal, self.keytab, self.ticket_cache)


@dataclass(frozen=True, kw_only=True)
class TicketDeclaration:
    """The content of the file that declares a cluster's tickets.

    Kept are the tickets of these `principals`, and always that of the connection's own principal, named or not.
    `folder` holds the caches of principals without a `cache` of their own. `every` and `check_every` are the DAGs'
    schedules: of the renewals, and of the keytab checks; `airflow` is for both.

    Raises InvalidInput: when a field is wrong.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principals: Annotated[tuple[PrincipalDeclaration, ...], MaxLen(1000)] = ()
    folder: LocalPath | None = None
    renew_at: Share = RenewalPolicy.renew_at
    alert_before: Wait = RenewalPolicy.alert_before
    every: Schedule = timedelta(minutes=15)
    check_every: Schedule = timedelta(days=1)
    airflow: AirflowOptions = field(default_factory=AirflowOptions)

    def __post_init__(self) -> None:
        require_distinct("principals names", (declared.principal for declared in self.principals))
        _ = self.policy
        require_notifiers(self.airflow)

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> TicketDeclaration:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(TicketDeclaration, fields)

    @classmethod
    def from_yaml(cls, text: str) -> TicketDeclaration:
        """Read YAML; an empty text declares nothing. Raises InvalidInput: also when the text is not YAML."""
        return cls.from_mapping(read_mapping(text))

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, which `from_mapping` takes."""
        return {**written(_present(self)), "principals": [_present(declared) for declared in self.principals]}

    @property
    def policy(self) -> RenewalPolicy:
        return RenewalPolicy(self.renew_at, self.alert_before)


@dataclass(frozen=True, kw_only=True)
class TokenDeclaration:
    """The content of the file that declares which tokens of a cluster are watched.

    Watched are the running applications of these YARN `users`, with one of these YARN `tags`, or with these ids
    (`applications`), and the credentials `files` (absolute paths on the worker, or hdfs:// URIs). A token needs a hand
    when at most `within` is left of its max lifetime. `every` is the DAG's schedule, and `airflow` has options of its
    task.

    Raises InvalidInput: when a field is wrong, or nothing is named.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    users: Annotated[tuple[UserName, ...], MaxLen(100)] = ()
    tags: Annotated[tuple[Word, ...], MaxLen(100)] = ()
    applications: Annotated[tuple[ApplicationId, ...], MaxLen(1000)] = ()
    files: Annotated[tuple[TokenFile, ...], MaxLen(1000)] = ()
    within: Wait = timedelta(days=1)
    every: Schedule = timedelta(hours=1)
    airflow: AirflowOptions = field(default_factory=AirflowOptions)

    def __post_init__(self) -> None:
        if not any(getattr(self, name) for name in _SOURCES):
            raise InvalidInput(f"it names nothing to watch; give one or more of {', '.join(_SOURCES)}")
        require_notifiers(self.airflow)

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> TokenDeclaration:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(TokenDeclaration, fields)

    @classmethod
    def from_yaml(cls, text: str) -> TokenDeclaration:
        """Read YAML. Raises InvalidInput: also when the text is not YAML."""
        return cls.from_mapping(read_mapping(text))


def require_distinct(what: str, names: Iterable[str]) -> None:
    """Raises InvalidInput: when one of the names comes twice; `what` begins the sentence."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"{what} {', '.join(twice)} more than once")


def _present(declared: object) -> dict[str, Any]:
    return {name: value for name, value in vars(declared).items() if value is not None}
