"""Whose tickets a command is about: the order that was named, or that of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.supervise.tickets.declaration import (
    TicketDeclaration,
    declaration_path,
    kept_tickets,
    read_declaration,
)
from airflow_kstream.supervise.tickets.renewal import ManagedTicket

DeclarationOption = Annotated[
    Path | None,
    typer.Option(
        "--declaration",
        help="A YAML file of principals, or a folder with CLUSTER.yaml; without it the connection's own alone.",
    ),
]


@dataclass(frozen=True)
class WrittenOrder:
    """An order and the file that it was read from, None where nothing is written down."""

    declaration: TicketDeclaration
    path: Path | None = None

    def kept(self, cluster: Cluster) -> tuple[ManagedTicket, ...]:
        """Raise InvalidInput that names the file."""
        try:
            return kept_tickets(cluster, self.declaration)
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}: {error.message}" if self.path else error.message) from error


def written_order(cluster: str, named: Path | None) -> WrittenOrder:
    """Raise InvalidInput."""
    path = declaration_path(cluster, named) if named and named.is_dir() else named
    return WrittenOrder(read_declaration(path) if path else TicketDeclaration(), path)
