"""When a ticket is due, urgent and over: under a clock that the test holds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.policy.tickets import TicketState, ticket_state
from tests.simulated.tickets import START, ticket

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (0, TicketState.FRESH),
        (4.9, TicketState.FRESH),
        (5, TicketState.DUE),
        (8.9, TicketState.DUE),
        (9, TicketState.URGENT),
        (10, TicketState.EXPIRED),
    ],
)
def test_a_10h_ticket_is_due_at_half_of_its_life_and_urgent_in_its_last_hour(
    after: float, expected: TicketState
) -> None:
    assert ticket_state(ticket(10 * HOUR), RenewalPolicy(), START + after * HOUR) is expected


def test_without_a_ticket_it_is_missing() -> None:
    assert ticket_state(None, RenewalPolicy(), START) is TicketState.MISSING


def test_a_short_ticket_is_urgent_only_in_its_last_quarter() -> None:
    minute = timedelta(minutes=1)
    policy = RenewalPolicy(alert_before=HOUR)
    assert policy.urgent(ticket(12 * minute)) == START + 9 * minute


def test_a_renewal_policy_refuses_values_out_of_range() -> None:
    for wrong in (0, 1, -0.5, 7):
        with pytest.raises(InvalidInput, match="renew_at"):
            RenewalPolicy(renew_at=wrong)
    with pytest.raises(InvalidInput, match="alert_before"):
        RenewalPolicy(alert_before=timedelta(seconds=-1))
