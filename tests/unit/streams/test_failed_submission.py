"""A client that ends without an application, and a ResourceManager that may merely not list it."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import SubmissionFailed, Unavailable
from airflow_kstream.model.submission import SubmitOutcome
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.reconcile import Reconciler
from tests.simulated.life import Life


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


def test_how_old_a_submission_is_no_namenode_tells(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both services fail over while the client runs, and the NameNode that answers now is four minutes behind."""
    behind, a_minute = timedelta(minutes=4), timedelta(minutes=1)
    asked = []

    def fail(*_: Any) -> SubmitOutcome:
        monkeypatch.setattr(time, "monotonic", lambda: began + a_minute.total_seconds())
        monkeypatch.setattr(life.hdfs, "now", lambda: life.clock.now() - behind)
        return SubmitOutcome(1, "no such jar")

    def young(of: str, age: timedelta, settled: timedelta) -> None:
        asked.append(age)
        if a_minute / 2 <= age:
            raise Unavailable(f"it became active 30s ago and may not have recovered {of} yet")

    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began)
    monkeypatch.setattr(life.engine, "submit", fail)
    monkeypatch.setattr(life.yarn, "confirm_absence", young)
    with pytest.raises(SubmissionFailed):
        life.begin()
    assert asked == [a_minute]
    assert len(fences(life)) == 1, "its application may yet be recovered"


def test_an_outage_of_minutes_is_reported_in_one_line(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt begins with the step that it takes, and ends without a conclusion."""
    answers: list[Unavailable | timedelta] = [*[Unavailable("no KDC answers")] * 50, timedelta(hours=10)]

    def acquire(*_: Any) -> timedelta:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    monkeypatch.setattr(tickets, "acquire", acquire)
    told: list[str] = []
    Reconciler(life.run, tell=told.append).run(Mode.ENSURE)
    assert [line.split(":")[0] for line in told[:2]] == ["submit", "no conclusion"]
    assert sum("no KDC answers" in line for line in told) == 1
    assert told.count(told[0]) == 1
