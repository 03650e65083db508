"""Which of a cluster's tickets somebody means: all of its order, or one principal's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.identity import Identity, split_principal
from airflow_kstream.supervise.tickets.declaration import TicketOrder, kept_tickets
from airflow_kstream.supervise.tickets.renewal import KeptTicket


@dataclass(frozen=True)
class TicketWish:
    """One principal with, where the order doesn't know them or says otherwise, its keytab and cache.

    Without a principal, a keytab or cache are those of the connection's own; with nothing at all everybody is meant.
    Raises InvalidInput for what is no principal and for paths that depend on where a process was started.
    """

    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None

    def __post_init__(self) -> None:
        if self.principal:
            split_principal(self.principal)
        for name in ("keytab", "cache"):
            path = getattr(self, name)
            if path and not path.removeprefix("FILE:").startswith("/"):
                raise InvalidInput(f"{name} is {path!r}; allowed is an absolute path")


def wished(cluster: Cluster, order: TicketOrder, wish: TicketWish) -> tuple[KeptTicket, ...]:
    """All of the order, or the one that is meant. Raise InvalidInput for a stranger without a keytab or cache."""
    if wish == TicketWish():
        return kept_tickets(cluster, order)
    return (wished_one(cluster, order, wish),)


def wished_one(cluster: Cluster, order: TicketOrder, wish: TicketWish) -> KeptTicket:
    """As `wished`, where nobody in particular means the connection's own principal."""
    principal = wish.principal or cluster.watcher.principal
    found = _known(cluster, order).get(principal) or _stranger(cluster, order, principal, wish)
    if wish.keytab:
        found = replace(found, identity=Identity(principal, keytab=wish.keytab.removeprefix("FILE:")))
    if wish.cache:
        found = replace(found, cache=Path(wish.cache.removeprefix("FILE:")), in_our_folder=False)
    return found


def _known(cluster: Cluster, order: TicketOrder) -> dict[str, KeptTicket]:
    return {kept.identity.principal: kept for kept in kept_tickets(cluster, order)}


def _stranger(cluster: Cluster, order: TicketOrder, principal: str, wish: TicketWish) -> KeptTicket:
    proof = {"keytab": wish.keytab} if wish.keytab else {"ticket_cache": wish.cache}
    if not (wish.keytab or wish.cache):
        known = ", ".join(_known(cluster, order))
        raise InvalidInput(f"{principal} is not among {known}, whom {cluster.name} knows; give its keytab or cache")
    said = order.to_mapping()
    more = {**said, "principals": [*said.get("principals", ()), {"principal": principal, **proof}]}
    return _known(cluster, TicketOrder.from_mapping(more))[principal]
