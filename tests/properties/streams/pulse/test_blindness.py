"""Who is woken by whose blindness, and when: the policy alone, its time an argument."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.policy.streams.pulse.blindness import STAGGER
from tests.simulated.restarts import dark


@given(st.lists(st.floats(0, 1500), min_size=2, max_size=60))
def test_streams_of_one_cluster_are_never_woken_all_at_once_and_each_is(plans: list[float]) -> None:
    woken = dark(plans, 2900)
    assert all(after - before >= STAGGER for (before, _), (after, _) in pairwise(woken))
    assert {number for _, number in woken} == set(range(len(plans)))
