"""A stream's declaration: accepted values, refused values, and the words of each refusal."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.durations import parse_duration


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_a_duration_that_was_written_down_in_seconds_is_read_back(duration: timedelta) -> None:
    assert abs(parse_duration(f"{duration.total_seconds():f}s") - duration) < timedelta(milliseconds=1)
