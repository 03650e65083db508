"""A stream that started with an old key: the time of its first failed renewal, and of its death."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.policy.streams.horizon.rotation import RenewalRounds, key_loss
from tests.simulated.yarn import START

DAY = timedelta(days=1)


@given(
    ratio=st.floats(0.1, 1),
    late=st.timedeltas(timedelta(), timedelta(minutes=10)),
    after=st.timedeltas(timedelta(), timedelta(days=30)),
    until=st.timedeltas(timedelta(), timedelta(days=3)),
    share=st.floats(0, 1),
)
def test_the_true_end_lies_between_the_bounds_for_any_rotation_and_driver_start(
    ratio: float, late: timedelta, after: timedelta, until: timedelta, share: float
) -> None:
    slack = timedelta(minutes=10)
    loss = key_loss(RenewalRounds(START, DAY, ratio, slack), START + after, START + after + until)
    rotated = START + after + until * share
    last_good = max(START + late, RenewalRounds(START + late, DAY, ratio).latest(rotated))
    assert loss.fails_from <= last_good + DAY * ratio <= loss.fails_by
    assert loss.dies_from <= last_good + DAY <= loss.dies_by
