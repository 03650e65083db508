"""The time of a file is its owner's to set: whatever number a stranger chose, a listing can be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.clusters.hdfs_path import file_time

CENTURY = timedelta(days=36525)


def test_an_honest_time_is_kept_to_the_millisecond() -> None:
    assert file_time(1_770_000_000_123) == datetime(2026, 2, 2, 2, 40, 0, 123000, UTC)


@pytest.mark.parametrize("milliseconds", [-(1 << 63), -62_135_596_800_001, -2, 0])
def test_a_time_before_1970_is_that_of_1970(milliseconds: int) -> None:
    assert file_time(milliseconds) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("milliseconds", [7_258_118_400_000, 253_402_300_800_000, (1 << 63) - 1])
def test_a_time_after_2200_is_that_of_2200_and_any_policy_can_add_to_it(milliseconds: int) -> None:
    assert file_time(milliseconds) == datetime(2200, 1, 1, tzinfo=UTC)
    assert file_time(milliseconds) + CENTURY > file_time(milliseconds)
