"""The end of credentials, and the times of our actions before it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, claim_of


@given(
    life=st.timedeltas(min_value=timedelta(minutes=3), max_value=timedelta(days=30)),
    plan_ratio=st.floats(min_value=0.2, max_value=0.99),
    jitter=st.floats(min_value=0, max_value=0.19),
    nonce=st.text(min_size=1, max_size=12),
)
def test_plan_force_and_horizon_come_in_this_order_after_the_issue(
    life: timedelta, plan_ratio: float, jitter: float, nonce: str
) -> None:
    spec = replace(TICKET_SPEC, restart=RestartPolicy(plan_ratio=plan_ratio, jitter_ratio=jitter))
    claim = changed(claim_of(TICKET_SPEC, 1, START), nonce=nonce, lifetimes=TokenLifetimes(life, life))
    ends = horizon(spec.restart, Credentials(claim), START)
    assert ends.plan is not None
    assert ends.force is not None
    assert ends.hard is not None
    assert START < ends.plan <= ends.force < ends.hard
