"""Whether a ticket is due for renewal, and when a failed renewal becomes an alert."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.model.kerberos.ticket import Ticket


class TicketState(StrEnum):
    """The state of a ticket. FRESH needs nothing, DUE can wait, URGENT expires soon; MISSING: there is no ticket."""

    FRESH = "fresh"
    DUE = "due"
    URGENT = "urgent"
    EXPIRED = "expired"
    MISSING = "missing"

    @property
    def serves(self) -> bool:
        """Return True if the ticket is still valid."""
        return self in {TicketState.FRESH, TicketState.DUE, TicketState.URGENT}

    @property
    def alarming(self) -> bool:
        """Return True if a failed renewal in this state can't wait for the next round."""
        return self in {TicketState.URGENT, TicketState.EXPIRED, TicketState.MISSING}


def ticket_state(ticket: Ticket | None, policy: RenewalPolicy, now: datetime) -> TicketState:
    if ticket is None:
        return TicketState.MISSING
    edges = (
        (ticket.expiry, TicketState.EXPIRED),
        (policy.urgent(ticket), TicketState.URGENT),
        (policy.due(ticket), TicketState.DUE),
    )
    return next((state for edge, state in edges if now >= edge), TicketState.FRESH)
