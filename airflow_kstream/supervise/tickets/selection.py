"""The selection of a cluster's tickets: all in its declaration, or one principal's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity, is_principal
from airflow_kstream.supervise.tickets.declaration import TicketDeclaration, kept_tickets
from airflow_kstream.supervise.tickets.managed import ManagedTicket


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
