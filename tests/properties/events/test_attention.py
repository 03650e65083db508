"""Which streams of a fleet need a hand: those that a person has to act for, and no others."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.policy.events.attention import (
    MOST,
    Look,
)
from airflow_kstream.policy.events.signs import Signs
from tests.simulated.signs import ABORTED, BREAKER, DAMAGED, FROZEN, HEALTHY, KILLED, STALLED, needed
from tests.simulated.values import changed


@given(st.lists(st.sampled_from([ABORTED, BREAKER, KILLED, STALLED, DAMAGED, FROZEN, HEALTHY]), max_size=1200))
def test_a_thousand_streams_make_no_megabyte_and_none_is_forgotten(signs: list[Signs]) -> None:
    long = [changed(one, why="x y" * 500, pulse_why="x " * 900, refusal=one.start.refusal * 90) for one in signs]
    result = needed(*map(Look, long))
    assert len(result) <= MOST
    assert len(json.dumps([hand.to_json() for hand in result])) < 100_000
    concerned = {name for hand in result for name in hand.streams}
    assert len(concerned) == sum(one is not HEALTHY for one in signs)
