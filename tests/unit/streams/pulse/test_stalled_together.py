"""Stalls that are the cluster's restart nothing: streams that are late together, servers that were silent just now."""

from __future__ import annotations

import pytest

from airflow_kstream.policy.streams.pulse.blindness import ClusterSight, Sight
from airflow_kstream.policy.streams.pulse.stalls import Together

QUIET = 150.0
HEALTHY = ClusterSight(seen=0.0)


def fleet(streams: int, late: int, at: float = 0.0) -> Together:
    together = Together()
    for number in range(streams):
        together = together.saw(f"s{number}", at, gets_on=number >= late)
    return together


@pytest.mark.parametrize(("streams", "late"), [(1, 1), (2, 1), (3, 1), (7, 2), (1000, 333)])
def test_a_stall_of_few_streams_is_theirs(streams: int, late: int) -> None:
    assert fleet(streams, late).why_held_back(10.0, HEALTHY, QUIET) == ""


@pytest.mark.parametrize(("streams", "late"), [(2, 2), (3, 2), (6, 2), (9, 3), (1000, 334)])
def test_a_stall_of_a_third_of_the_streams_is_the_clusters(streams: int, late: int) -> None:
    assert fleet(streams, late).why_held_back(10.0, HEALTHY, QUIET) == (
        f"{late} of {streams} streams do not get on, so the cause may be the cluster's"
    )


def test_the_last_look_at_a_stream_counts_and_one_that_has_gone_does_not() -> None:
    together = fleet(6, 2).saw("s0", 5.0, gets_on=True)
    assert together.why_held_back(10.0, HEALTHY, QUIET) == ""
    assert fleet(6, 2).saw("s0", 700.0, gets_on=False).why_held_back(700.0, HEALTHY, QUIET) == ""


def test_nothing_is_restarted_while_servers_are_silent_nor_shortly_afterwards() -> None:
    """After an hour without servers all batches have been in flight for an hour, and go on by themselves."""
    shared = Sight(looked=0.0, patience=300.0)
    away = HEALTHY.failed(100.0, Sight(looked=0.0, patience=300.0, shared=True))
    assert HEALTHY.failed(100.0, shared).failing_since is None
    one = fleet(3, 1, at=3_650.0)
    assert one.why_held_back(3_650.0, away, QUIET) == "the cluster's servers do not answer every look"
    back = away.saw(3_700.0).saw(3_800.0)
    assert one.why_held_back(3_849.0, back, QUIET) == "the cluster's servers answer again for 149 s only"
    assert one.why_held_back(3_850.0, back, QUIET) == ""
