"""Which tickets and tokens are about to expire, by a clock that the test holds."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.simulated.tickets import HOUR, NOW, expiring

lefts = st.lists(st.timedeltas(-2 * HOUR, 5 * HOUR), max_size=30)


@given(lefts)
def test_due_is_what_has_at_most_the_time_left_the_most_urgent_first(lefts: list[timedelta]) -> None:
    assert [end.max_date - NOW for end in expiring(lefts).due] == sorted(left for left in lefts if left <= HOUR)


@given(lefts)
def test_a_report_counts_all_and_lists_a_bounded_number(lefts: list[timedelta]) -> None:
    report = expiring(lefts).report(rows=3)
    assert (report["source"], report["tokens"]) == ("file /t", len(lefts))
    assert [row["token"] for row in report["expiring"]] == [end.name for end in expiring(lefts).due[:3]]
