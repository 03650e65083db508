"""When a ticket is due for renewal, and from when on a failure to renew it is an alert."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.ticket import Ticket

_LARGEST_ALERT_SHARE = 4


@dataclass(frozen=True)
class RenewalPolicy:
    """`renew_at` is the share of a ticket's life after which it is due.

    `alert_before` is how long before its expiry a ticket that was not renewed is urgent, but never more than a quarter
    of its life: tickets of ten minutes would be urgent from the start. Raises InvalidInput.
    """

    renew_at: float = 0.5
    alert_before: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if not 0 < self.renew_at < 1:
            raise InvalidInput(f"renew_at is {self.renew_at}; allowed is a share between 0 and 1")
        if self.alert_before < timedelta():
            raise InvalidInput(f"alert_before is {self.alert_before}; allowed is 0 or more")

    def due(self, ticket: Ticket) -> datetime:
        """From when on it is to be renewed: never later than it is urgent."""
        return min(ticket.start + ticket.life * self.renew_at, self.urgent(ticket))

    def urgent(self, ticket: Ticket) -> datetime:
        return ticket.expiry - min(self.alert_before, ticket.life / _LARGEST_ALERT_SHARE)


class TicketState(StrEnum):
    """FRESH needs nothing, DUE can wait, URGENT is about to expire; MISSING is when there is no ticket to look at."""

    FRESH = "fresh"
    DUE = "due"
    URGENT = "urgent"
    EXPIRED = "expired"
    MISSING = "missing"

    @property
    def serves(self) -> bool:
        """Whether the ticket still opens doors."""
        return self in {TicketState.FRESH, TicketState.DUE, TicketState.URGENT}

    @property
    def alarming(self) -> bool:
        """Whether a failure to renew it in this state can't wait for the next round."""
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
