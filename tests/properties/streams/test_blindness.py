"""Who is woken by whose blindness, and when: the policy alone, its time an argument."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.policy.streams.blindness import STAGGER, ClusterSight, reason_to_wake
from tests.unit.streams.test_blindness import SEES


@given(st.lists(st.floats(0, 3000), min_size=2, max_size=30))
def test_streams_of_one_cluster_are_never_woken_all_at_once(plans: list[float]) -> None:
    cluster, sights = ClusterSight(0.0), [replace(SEES, shared=True, plan=plan) for plan in plans]
    woken: list[int] = []
    for now in range(0, 3600, 5):
        for number, before in enumerate(sights):
            sight = before.failed(now, shared=True)
            cluster = cluster.failed(now, sight)
            if reason_to_wake(sight, cluster, now):
                woken.append(now)
                cluster = cluster.woke(now)
                sight = replace(sight, wakings=sight.wakings + 1, arrived=float(now), looked=float(now))
            sights[number] = sight
    assert all(after - before >= STAGGER for before, after in pairwise(woken))
    assert all(sight.wakings for sight in sights) or len(plans) * STAGGER > 500
