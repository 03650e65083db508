"""A client that ends without an application, and a ResourceManager that may merely not list it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_kstream.model.errors import SubmissionFailed, Unavailable
from airflow_kstream.model.submission import SubmitOutcome
from tests.unit.streams.life import Life


@pytest.fixture
def failing(life: Life, monkeypatch: pytest.MonkeyPatch) -> Life:
    def fail(*_: Any) -> SubmitOutcome:
        return SubmitOutcome(1, "no such jar")

    monkeypatch.setattr(life.engine, "submit", fail)
    return life


def fences(life: Life) -> list[str]:
    return [path for path in life.hdfs.files if "/fence-" in path]


def test_what_surely_did_not_arrive_loses_its_fence(failing: Life) -> None:
    with pytest.raises(SubmissionFailed, match="no such jar"):
        failing.begin()
    assert fences(failing) == []


def test_what_may_have_arrived_keeps_its_fence_and_the_failure_is_raised(
    failing: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doubt(of: str, age: timedelta, settled: timedelta) -> None:
        raise Unavailable(f"another one says that it is ACTIVE, and may have {of}")

    monkeypatch.setattr(failing.yarn, "confirm_absence", doubt)
    with pytest.raises(SubmissionFailed, match="no such jar"):
        failing.begin()
    assert len(fences(failing)) == 1
