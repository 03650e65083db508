"""The policy that says when a ticket is due for renewal, and when a failed renewal becomes an alert."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.ticket import Ticket

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
