"""When a ticket is due, urgent and over: under a clock that the test holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.ticket import Ticket
from airflow_kstream.policy.tickets.renewal import RenewalPolicy, TicketState, ticket_state

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ORDER = [TicketState.FRESH, TicketState.DUE, TicketState.URGENT, TicketState.EXPIRED]

lives = st.timedeltas(timedelta(seconds=1), timedelta(days=30))
policies = st.builds(
    RenewalPolicy, st.floats(0.01, 0.99), st.timedeltas(timedelta(), timedelta(days=2))
)  # fmt: skip


def ticket(life: timedelta) -> Ticket:
    return Ticket("me@R", "krbtgt/R@R", START, START + life, None, frozenset(), "aes256-cts-hmac-sha1-96", 1)


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


@given(lives, policies, st.floats(0, 1.5), st.floats(0, 1.5))
def test_a_ticket_only_ever_gets_worse(life: timedelta, policy: RenewalPolicy, one: float, other: float) -> None:
    earlier, later = sorted((one, other))
    states = [ticket_state(ticket(life), policy, START + life * share) for share in (earlier, later)]
    assert ORDER.index(states[0]) <= ORDER.index(states[1])


@given(lives, policies)
def test_every_ticket_is_fresh_then_due_then_urgent_then_expired(life: timedelta, policy: RenewalPolicy) -> None:
    held = ticket(life)
    assert ticket_state(held, policy, START) is TicketState.FRESH
    assert START < policy.due(held) <= policy.urgent(held) <= held.expiry


@given(lives, policies)
def test_a_ticket_that_is_no_longer_valid_is_alarming(life: timedelta, policy: RenewalPolicy) -> None:
    for share in (0.0, 0.5, 0.99, 1.0, 2.0):
        state = ticket_state(ticket(life), policy, START + life * share)
        assert state.serves or state.alarming
        assert state.serves == (share < 1)


def test_a_renewal_policy_refuses_values_out_of_range() -> None:
    for wrong in (0, 1, -0.5, 7):
        with pytest.raises(InvalidInput, match="renew_at"):
            RenewalPolicy(renew_at=wrong)
    with pytest.raises(InvalidInput, match="alert_before"):
        RenewalPolicy(alert_before=timedelta(seconds=-1))
