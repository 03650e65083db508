"""What a run of the tests says that it tried."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counts import Counts, collector, examples_in, submitted, tier_of


def test_an_application_is_counted_once_and_only_when_it_was_submitted() -> None:
    first, other = "application_1795390400747_0001", "application_1795390400747_0002"
    lines = [
        f"INFO rmapp.RMAppImpl: Storing application with id {first}",
        f"INFO recovery.RMStateStore: Storing info for app: {first}",
        f"INFO rmapp.RMAppImpl: Storing application with id {first}",
        f"INFO rmapp.RMAppImpl: Storing application with id {other}",
        "INFO rmapp.RMAppImpl: Recovering app: application_1795390400747_0003",
    ]
    assert submitted(lines) == {first, other}


def test_examples_that_a_property_did_not_accept_are_none() -> None:
    cases = [{"status": "valid"}, {"status": "invalid"}, {"status": "interesting"}]
    assert examples_in({"generate-phase": {"test-cases": cases}, "stopped-because": "x", "nodeid": "y"}) == 2


def test_a_tier_is_the_folder_below_the_tests() -> None:
    assert tier_of("tests/unit/streams/test_x.py::test_y[a/b]") == "unit"


def test_the_line_has_all_counts() -> None:
    counts = Counts(Counter(unit=3, cluster=2), examples=700, clusters=1, submissions=4)
    assert str(counts) == "5 tests (2 cluster, 3 unit), 700 property examples, 1 clusters, 4 applications on them"


def test_each_example_of_a_property_is_counted() -> None:
    noted: list[dict[str, Any]] = []

    @settings(max_examples=7)
    @given(st.integers())
    def holds(number: int) -> None:
        assert number == number + 0

    with collector.with_value(noted.append):
        holds()
    assert sum(map(examples_in, noted)) == 7
