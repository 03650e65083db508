"""Sizes of the rows that are stored of a stream."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_kstream.model.streams.stream_state import StoredProgress, StreamState, TaskIds
from airflow_kstream.policy.states.due import DETAIL, VERDICT, fitted, size

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STALLED = StoredProgress("stalled")


def state(verdict: str, by: TaskIds) -> StreamState:
    return StreamState(
        "backing off", verdict, 12, "application_1700000000000_0001", NOW, NOW, NOW, progress=STALLED, by=by
    )


def test_a_usual_state_is_stored_whole() -> None:
    usual = state("generation 12 ended with an error", TaskIds("stream-prod-orders", "manual__2026-03-01", "keep", 3))
    row = fitted(usual.to_json(), VERDICT)
    assert "cut" not in row
    assert StreamState.from_json(row) == usual


@pytest.mark.parametrize("verdict", ["word " * 20_000, "ж" * 5_000, '"' * 4_000])
def test_a_long_verdict_is_cut_and_the_ids_are_not(verdict: str) -> None:
    by = TaskIds("stream-prod-orders", "manual__2026-03-01T12:00:00+00:00", "keep")
    row = fitted(state(verdict, by).to_json(), VERDICT)
    assert size(row) <= VERDICT
    assert row["cut"] is True
    assert row["verdict"].endswith("…")
    read = StreamState.from_json(row)
    assert read is not None
    assert read.by == by


def test_the_longest_ids_that_airflow_allows_fit() -> None:
    ids = TaskIds("d" * 250, "ж" * 250, "t" * 250)
    assert size(fitted(state("y" * 500, ids).to_json(), VERDICT)) <= VERDICT


@pytest.mark.parametrize(
    "detail",
    [
        {"failure": "word " * 200_000},
        {"ends": [{"at": "2026-03-01", "why": "words " * 50}] * 1000},
        {"nested": [[["deep"] * 20] * 20] * 20},
        {f"key {number}": "v" for number in range(5000)},
    ],
)
def test_a_detail_of_any_shape_fits(detail: dict[str, Any]) -> None:
    row = fitted({"version": 1, "detail": detail}, DETAIL)
    assert size(row) <= DETAIL
    assert row["cut"] is True


def test_of_a_long_list_the_newest_items_are_kept() -> None:
    row = fitted({"ends": [f"end {number} {'words ' * 50}" for number in range(1000)]}, DETAIL)
    assert row["ends"][-1].startswith("end 999 ")


def test_secrets_are_masked_wherever_they_are() -> None:
    said = "it failed with jdbc:postgresql://u:hunter2@db/x and sasl.password=hunter2"
    row = fitted({"verdict": said, "detail": {"ends": [{"why": said}]}}, DETAIL)
    assert "hunter2" not in str(row)


def test_what_a_later_version_wrote_is_read_and_what_is_broken_is_not() -> None:
    usual = state("runs", TaskIds())
    assert StreamState.from_json({**usual.to_json(), "version": 9, "more": 1}) == usual
    assert StreamState.from_json({"state": "running", "seen": "yesterday"}) is None
    assert StreamState.from_json(["running"]) is None
