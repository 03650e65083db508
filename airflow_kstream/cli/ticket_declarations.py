"""Whose tickets a command is about: the order that was named, or that of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.supervise.tickets.declaration import TicketOrder, kept_tickets, order_path, read_order
from airflow_kstream.supervise.tickets.renewal import KeptTicket

OrderOption = Annotated[
    Path | None,
    typer.Option("--order", help="The YAML file with the principals; else $KSTREAM_TICKETS/CLUSTER.yaml, if there."),
]


@dataclass(frozen=True)
class WrittenOrder:
    """An order and the file that it was read from, None where nothing is written down."""

    order: TicketOrder
    path: Path | None = None

    def kept(self, cluster: Cluster) -> tuple[KeptTicket, ...]:
        """Raise InvalidInput that names the file."""
        try:
            return kept_tickets(cluster, self.order)
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}: {error.message}" if self.path else error.message) from error


def written_order(cluster: str, named: Path | None) -> WrittenOrder:
    """Raise InvalidInput."""
    path = named or order_path(cluster)
    return WrittenOrder(read_order(path) if path else TicketOrder(), path)
