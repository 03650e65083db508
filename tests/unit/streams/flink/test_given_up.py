"""The moment before which a running Flink job gave up what it left open: only where no start would want it again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.streams.flink_job import FlinkCheckpoint, FlinkCheckpoints
from airflow_kstream.policy.streams.flink.resume import given_up_before

RESTART = datetime(2026, 5, 1, 12, tzinfo=UTC)
FROM = FlinkCheckpoint(7, RESTART, "hdfs://kstream/checkpoints/abc/chk-7", is_savepoint=False)
SEEN = FlinkCheckpoints(9, 0, 0, 1, None, None, FROM, None, completed_since_restart=2)


def test_what_stopped_growing_before_the_last_restart_is_given_up() -> None:
    """By five minutes: the JobManager tells when it was, and the NameNode when the file was looked at."""
    assert given_up_before(SEEN, [8, 9], others=False) == RESTART - timedelta(minutes=5)


@pytest.mark.parametrize(
    ("seen", "retained", "others"),
    [
        (replace(SEEN, resumed_from=None), [8, 9], False),
        (replace(SEEN, completed_since_restart=1), [8], False),
        (SEEN, [7, 8, 9], False),
        (SEEN, [], False),
        (SEEN, [8, 9], True),
    ],
    ids=[
        "it never restarted",
        "one checkpoint since",
        "the one it went on from is still there",
        "no checkpoint is there",
        "older ones of another job",
    ],
)
def test_nothing_is_given_up_that_a_start_may_want(seen: FlinkCheckpoints, retained: list[int], others: bool) -> None:
    assert given_up_before(seen, retained, others=others) is None
