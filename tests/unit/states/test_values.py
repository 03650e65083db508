"""What a task's report leaves of what looks saw: of the same generation all that holds, of another one nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.plan import JobReport, Phase, Report
from airflow_kstream.model.streams.stream_state import StoredProgress, StreamState, TaskIds
from airflow_kstream.states.values import detail_row, report_after, reported, reported_detail
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.views.pages.fleet import StoredStream, fleet_rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BEFORE = NOW - MINUTE
PUSHED = Horizon(HorizonReason.NOT_PUSHED, NOW + 60 * MINUTE, NOW + 50 * MINUTE)
JOB = JobReport("application_1_3", "", "", succeeded=False, diagnostics="")
REPORT = Report("orders", Phase.RUNNING, "it runs", 3, JOB, PUSHED, None)
LOOKED = StreamState(
    "push",
    "",
    3,
    "application_1_3",
    BEFORE,
    progress=StoredProgress(committed=BEFORE, batches=(2.5,)),
    desired=Desired(by="maria"),
)
FACTS = {"generation": 3, "claimed": "2026-03-01T00:00:00+00:00", "horizon": {"reason": "of the old tokens"}}
ROW = {"seen": BEFORE.isoformat(), "detail": {"facts": FACTS, "refreshed": {"confirmed_push_seconds": 30.0}}}


def shown(report: Report, looked: StreamState | None = LOOKED, row: object = ROW) -> dict[str, Any]:
    state = reported(report, TaskIds("dag", "run", "keep"), NOW, looked)
    detail = detail_row(state, reported_detail(report, row, NOW))
    return fleet_rows([StoredStream("prod", "orders", state, detail=detail, task="deferred")], NOW, MINUTE)[0]


def test_after_a_push_a_stream_shows_what_the_look_before_it_saw() -> None:
    row = shown(REPORT)
    assert row["committed"] == BEFORE.isoformat()
    assert row["batches"] == [2.5]
    assert row["desired"]["by"] == "maria"
    assert row["began"]["at"] == FACTS["claimed"]
    assert row["pushes"]["confirmed"] == (BEFORE - MINUTE / 2).isoformat()


def test_the_horizon_is_the_one_that_the_task_left() -> None:
    horizon = shown(REPORT)["horizon"]
    assert PUSHED.plan is not None
    assert (horizon["plan"], "were pushed last" in horizon["reason"]) == (PUSHED.plan.isoformat(), True)


def test_of_the_next_generation_nothing_is_known_but_what_its_task_tells() -> None:
    row = shown(replace(REPORT, generation=4))
    assert (row["began"]["at"], row["pushes"]) == (None, None)
    assert row["horizon"]["reason"] == PUSHED.reason.value
    assert row["committed"] == BEFORE.isoformat(), "the checkpoint is the same"


def test_a_row_that_somebody_wrote_keeps_no_task_from_storing_its_report() -> None:
    for seen in ("2026-03-01T12:00:00", "yesterday", 7):
        assert shown(REPORT, row={**ROW, "seen": seen})["state"] == "running"


def test_another_word_than_the_task_acted_on_is_not_kept() -> None:
    held = replace(LOOKED, desired=Desired(DesiredState.HELD, by="maria"))
    assert shown(REPORT, held)["desired"] == {}
    assert shown(replace(REPORT, phase=Phase.HELD), held)["desired"]["by"] == "maria"


def test_a_task_that_is_the_first_to_look_leaves_what_it_knows() -> None:
    assert shown(REPORT, None, None)["horizon"]["reason"] == PUSHED.reason.value


def test_a_newer_generation_is_not_foretold_what_was_said_of_the_one_before() -> None:
    told = {"generation": 3, "foretold": ["its logs are lost on 3 March"], "logs_url": "http://rm/3"}
    same, newer = (report_after(told, replace(LOOKED, generation=number), Verdict(None, "")) for number in (3, 4))
    assert (same["foretold"], same["logs_url"]) == (told["foretold"], told["logs_url"])
    assert (newer["foretold"], newer["logs_url"]) == ([], "")
