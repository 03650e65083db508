"""When a ticket is due, urgent and over: under a clock that the test holds."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.policy.tickets import TicketState, ticket_state
from tests.simulated.tickets import START, ticket

ORDER = [TicketState.FRESH, TicketState.DUE, TicketState.URGENT, TicketState.EXPIRED]

lives = st.timedeltas(timedelta(seconds=1), timedelta(days=30))

policies = st.builds(
    RenewalPolicy, st.floats(0.01, 0.99), st.timedeltas(timedelta(), timedelta(days=2))
)  # fmt: skip


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
