"""A stream's page, and that what each page answers is what its script expects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_kstream.model.streams.event import EndedEvent, EventKind, Ledger
from airflow_kstream.model.streams.generation import Life, Progress
from airflow_kstream.model.streams.stream_state import TaskIds
from airflow_kstream.views.pages.fleet import StoredStream, UnseenStream
from airflow_kstream.views.pages.kept import files_after, files_page
from airflow_kstream.views.pages.stream import stream_page
from tests.unit.views.test_fleet_page import HOUR, LATE, NOW, SEEN, told
from tests.unit.views.test_kept_pages import finding, report, run
from tests.wheel import ROOT

TYPES = (ROOT / "airflow_kstream/plugin/ui/src/stored.ts").read_text()
REPORT = {
    "generation": 3,
    "application_url": "http://rm:8088/cluster/app/application_1_0001",
    "logs_url": "http://rm:8088/logs",
    "foretold": ["its second attempt will fail from 2026-05-14 03:12 UTC on (second-attempt)"],
    "spec_differences": ["conf"],
    "spec_doubt": "",
    "owner_doubt": "somebody else owns its checkpoint",
    "submission": {"notes": [], "binary": "spark-submit", "parts": []},
}


def page(stream: StoredStream) -> dict[str, Any]:
    return stream_page(stream, NOW, LATE)


def interface(name: str) -> set[str]:
    """Return the names of the fields that a script expects."""
    [body] = re.findall(rf"export interface {name} \{{\n(.*?)\n\}}", TYPES, re.S)
    return set(re.findall(r"^  (\w+)\??:", body, re.M))


def test_the_page_has_what_its_task_reported() -> None:
    seen = page(replace(SEEN, report=REPORT))
    assert seen["differences"] == ["conf"]
    assert seen["doubts"] == ["somebody else owns its checkpoint"]
    assert seen["submission"]["binary"] == "spark-submit"
    assert seen["addresses"]["application"].endswith("application_1_0001")


def test_reports_of_an_earlier_generation_are_not_shown() -> None:
    assert page(replace(SEEN, report=REPORT))["foretold"] == REPORT["foretold"]
    before = page(replace(SEEN, report={**REPORT, "generation": 2}))
    assert (before["addresses"], before["foretold"]) == ({}, [])


def test_events_that_are_over_stand_before_those_that_last() -> None:
    past = EndedEvent(EventKind.BLOCKED, NOW - 5 * HOUR, NOW - 4 * HOUR, "no ticket")
    ledger = told(EventKind.STALLED)
    events = page(replace(SEEN, told=Ledger(ledger.lasting, 3, (past,))))["events"]
    assert [(event["kind"], event["until"] is None) for event in events] == [
        ("restart_blocked", False),
        ("stalled", True),
    ]


def test_the_page_of_a_stall_says_where_its_evidence_lies() -> None:
    detail = {"detail": {"facts": {"generation": 3, "evidence": "/kstream/orders-1/evidence"}}}
    starts = replace(
        SEEN,
        state=replace(SEEN.state, state="starting", progress=replace(SEEN.state.progress, pulse="STARTING")),
        detail=detail,
    )
    assert page(starts)["evidence"] == ""
    said = page(replace(starts, told=told(EventKind.STALLED)))["evidence"]
    assert "`kstream streams evidence orders`" in said
    assert "below `/kstream/orders-1/evidence`" in said
    assert (
        "below `evidence`"
        in page(replace(SEEN, state=replace(SEEN.state, progress=replace(SEEN.state.progress, pulse="STALLED"))))[
            "evidence"
        ]
    )


def test_the_page_of_a_stall_names_the_processes_of_its_own_engine() -> None:
    stalled = replace(SEEN, state=replace(SEEN.state, progress=replace(SEEN.state.progress, pulse="STALLED")))
    facts = {"generation": 3, "processes": "JobManager and TaskManagers"}
    said = page(replace(stalled, detail={"detail": {"facts": facts}}))["evidence"]
    assert "takes the threads of its JobManager and TaskManagers, and" in said
    assert "takes the threads of its processes, and" in page(stalled)["evidence"]


def test_a_stream_that_nobody_looked_at_has_a_page_of_the_same_fields() -> None:
    unseen = stream_page(UnseenStream("prod", "new", TaskIds("stream-prod.new"), paused=True), NOW, LATE)
    assert unseen.keys() == page(SEEN).keys()
    assert unseen["row"]["findings"][0]["words"] == "its DAG is paused"


def test_a_stream_without_any_detail_has_a_page() -> None:
    seen = page(SEEN)
    assert (seen["lives"], seen["events"], seen["facts"], seen["submission"]) == ([], [], None, None)


@pytest.mark.parametrize(
    ("name", "answered"),
    [
        ("StreamStored", {**page(SEEN), "cluster": None}),
        ("Row", page(SEEN)["row"]),
        ("Horizon", page(SEEN)["row"]["horizon"]),
        ("Watcher", page(SEEN)["row"]["watcher"]),
        ("Finding", page(replace(SEEN, task=""))["row"]["findings"][0]),
        ("Told", page(replace(SEEN, told=told(EventKind.STALLED)))["events"][0]),
        ("Life", dict.fromkeys(field.name for field in fields(Life))),
        ("Progress", dict.fromkeys(field.name for field in fields(Progress))),
    ],
)
def test_a_script_expects_what_is_answered(name: str, answered: Mapping[str, Any]) -> None:
    assert interface(name) - set(answered) == set(), "it expects what nobody answers"
    assert set(answered) - interface(name) == set(), "nobody reads what is answered"


def test_the_files_script_expects_what_is_answered() -> None:
    [path] = files_page(
        [
            files_after(
                None,
                report(finding("/data/a", "idle"), recoveries=[{"path": "/data/b", "outcome": "closed"}]),
                {**run(1), "dag": "leases-prod"},
            )
        ]
    )
    assert interface("FilesPath") == set(path)
    assert interface("OpenFile") == set(path["files"][0])
    assert interface("Recovery") == set(path["recoveries"][0])
    assert interface("FilesRun") <= set(path["runs"][0])
    assert timedelta(seconds=path["files"][0]["unchanged_seconds"]) == timedelta(minutes=2)
