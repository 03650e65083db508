"""The tickets that a command handles: those of a declaration, and always the connection's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.supervise.tickets.declaration import (
    TicketDeclaration,
    declaration_path,
    kept_tickets,
    read_declaration,
)
from airflow_kstream.supervise.tickets.managed import ManagedTicket

DeclarationOption = Annotated[
    Path | None,
    typer.Option(
        "--declaration",
        help="A YAML file of principals, or a folder with CLUSTER.yaml; without it the connection's own alone.",
    ),
]


@dataclass(frozen=True)
class WrittenDeclaration:
    """A declaration and the file that it was read from, None if there is none."""

    declaration: TicketDeclaration
    path: Path | None = None

    def kept(self, cluster: Cluster) -> tuple[ManagedTicket, ...]:
        """Return the tickets and their caches. Raises InvalidInput: when the declaration does not fit this cluster."""
        try:
            return kept_tickets(cluster, self.declaration)
        except InvalidInput as error:
            message = f"{self.path}: {error.message}" if self.path else f"{error.message} (--declaration FILE)"
            raise InvalidInput(message) from error


def written_declaration(cluster_name: str, named: Path | None) -> WrittenDeclaration:
    """Read the declaration, an empty one without a file. Raises InvalidInput: when the file is wrong or unreadable."""
    path = declaration_path(cluster_name, named) if named and named.is_dir() else named
    return WrittenDeclaration(read_declaration(path) if path else TicketDeclaration(), path)
