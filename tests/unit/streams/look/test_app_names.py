"""What people call a stream is seen wherever it is looked at, and decides nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.streams.stream_state import StreamState, TaskIds
from airflow_kstream.states.values import reported, state_of
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.views.streams import streams_table
from tests.simulated.life import SPEC, Life

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def test_a_task_and_a_watcher_both_say_what_people_call_the_stream(life: Life) -> None:
    life.run = replace(life.run, spec=replace(SPEC, app_name="Orders.Stream v2"))
    report, verdict = life.begin(), life.watch()
    assert (report.stream, report.app_name) == ("orders", "Orders.Stream v2")
    assert verdict.people.app_name == "Orders.Stream v2"
    assert reported(report, TaskIds(), NOW).app_name == "Orders.Stream v2"
    assert [str(cell) for cell in streams_table({"orders": verdict}).columns[0].cells] == ["Orders.Stream v2 (orders)"]


def test_a_look_without_a_conclusion_keeps_the_name_and_a_new_one_is_a_change(life: Life) -> None:
    life.run = replace(life.run, spec=replace(SPEC, app_name="Orders.Stream v2"))
    life.begin()
    before = state_of(life.watch(), Ledger(), TaskIds(), NOW, None)
    blind = state_of(Verdict(None, "the ResourceManager is away"), Ledger(), TaskIds(), NOW, before)
    assert blind.app_name == "Orders.Stream v2"
    assert replace(before, app_name="Orders").mark != before.mark
    assert StreamState.from_json(before.to_json()) == before


def test_a_stream_of_a_claim_with_escapes_in_its_name_is_shown_by_its_id(life: Life) -> None:
    """Its own job may have written the claim."""
    life.run = replace(life.run, spec=replace(SPEC, app_name="Orders"))
    life.begin()
    for path, (text, at) in [*life.hdfs.files.items()]:
        life.hdfs.files[path] = (text.replace('"Orders"', '"\\u001b[2J"'), at)
    life.use(life.hdfs, life.engine)
    verdict = life.watch()
    assert verdict.step
    assert verdict.people.app_name == ""
