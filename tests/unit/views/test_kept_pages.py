"""The pages of files, tickets and keytabs: what tasks keep for them, and in which order it is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.views.pages.kept import FILES, files_after, files_page, key_of, keytabs_of, shown, tickets_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEEN = {"at": NOW.isoformat()}


def finding(path: str, condition: str) -> dict[str, Any]:
    return {"path": path, "condition": condition, "why": "its lease was not renewed", "unchanged_seconds": 120.0}


def report(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"findings": list(findings), "plan": {"/data/b": "it would be recovered"}, "counts": {"open": 2}, **more}


def run(number: int) -> dict[str, Any]:
    return {"at": NOW.isoformat(), "path": "/data", "run": f"run-{number}", "by": "maria", "dry_run": False}


def test_stuck_files_come_first_with_what_would_be_done() -> None:
    kept = files_after(None, report(finding("/data/a", "growing"), finding("/data/b", "holder dead")), run(1))
    [path] = files_page([kept])
    assert [(file["path"], file["stuck"]) for file in path["files"]] == [("/data/b", True), ("/data/a", False)]
    assert path["files"][0]["planned"] == "it would be recovered"


def test_a_file_that_a_person_recovered_is_stuck_no_longer_in_its_folder() -> None:
    folder = files_after(None, report(finding("/data/a", "growing"), finding("/data/b", "holder dead")), run(1))
    closed = {"path": "/data/b", "outcome": "closed", "bytes_lost": 0}
    later = {**run(2), "path": "/data/b", "at": (NOW + timedelta(minutes=1)).isoformat()}
    by_hand = files_after(None, report(finding("/data/b", "holder dead"), recoveries=[closed]), later)
    [path] = files_page([folder, by_hand])
    assert [file["path"] for file in path["files"]] == ["/data/a"]
    assert [(each["path"], each["outcome"]) for each in path["recoveries"]] == [("/data/b", "closed")]
    assert [told["run"] for told in path["runs"]] == ["run-1", "run-2"]


def test_files_that_nobody_can_judge_are_counted_with_the_most_frequent_reason() -> None:
    denied = {**finding("/data/a", "unknown"), "advice": "run as its owner"}
    counts = {"counts": {"conditions": {"unknown": 4, "growing": 1}, "unreadable": 2}, "unreadable": {"/data/x": "no"}}
    unknown = [denied, {**denied, "path": "/data/c"}, finding("/data/d", "unknown")]
    folder = files_after(None, report(*unknown, finding("/data/e", "growing"), **counts), run(1))
    [path] = files_page([folder])
    assert path["unjudged"] == {"count": 6, "why": "run as its owner"}, "one row is not kept"
    closed = {"path": "/data/c", "outcome": "closed", "bytes_lost": 0}
    by_hand = files_after(None, report(recoveries=[closed]), {**run(2), "path": "/data/c", "at": f"{NOW.isoformat()}1"})
    [path] = files_page([folder, by_hand])
    assert path["unjudged"]["count"] == 5
    [path] = files_page([files_after(None, report(finding("/data/a", "growing")), run(1))])
    assert path["unjudged"] == {"count": 0, "why": ""}


def test_an_open_file_that_was_closed_since_is_counted_as_closed() -> None:
    closed = {"path": "/data/b", "outcome": "closed", "bytes_lost": 0}
    found = report(finding("/data/a", "growing"), finding("/data/b", "holder dead"), recoveries=[closed])
    [path] = files_page([files_after(None, found, run(1))])
    assert (path["counts"]["open"], path["closed"], len(path["files"])) == (2, 1, 1)


@pytest.mark.parametrize(
    ("condition", "lost", "words"),
    [
        ("holder dead", 0, "readers see as much as before"),
        (
            "holder alive without progress",
            0,
            "readers see as much as before; what its writer had not flushed is lost",
        ),
        ("holder dead", 12, ""),
        ("holder dead", None, ""),
    ],
)
def test_nobody_knows_what_a_living_writer_had_not_flushed(condition: str, lost: int | None, words: str) -> None:
    closed = {"path": "/data/b", "outcome": "closed", "bytes_lost": lost}
    [path] = files_page([files_after(None, report(finding("/data/b", condition), recoveries=[closed]), run(1))])
    assert path["recoveries"][0]["kept"] == words


def test_a_folder_that_was_looked_at_since_says_what_it_found_itself() -> None:
    before = {**run(1), "path": "/data/b", "at": (NOW - timedelta(minutes=1)).isoformat()}
    by_hand = files_after(None, report(recoveries=[{"path": "/data/b", "outcome": "closed"}]), before)
    folder = files_after(None, report(finding("/data/b", "holder dead")), run(2))
    [path] = files_page([by_hand, folder])
    assert [file["stuck"] for file in path["files"]] == [True]


def test_the_last_twenty_runs_are_kept() -> None:
    kept: object = None
    for number in range(30):
        kept = files_after(kept, report(summary=f"summary {number}"), run(number))
    [path] = files_page([kept])  # type: ignore[list-item]
    assert [told["run"] for told in path["runs"]] == [f"run-{number}" for number in range(10, 30)]
    assert path["runs"][-1]["summary"] == "summary 29"


def test_a_row_that_can_not_be_read_hides_no_other() -> None:
    kept = files_after({"runs": "many"}, report(), run(1))
    assert [path["path"] for path in files_page([{}, {"path": "/x", "report": 7}, kept])] == ["/data"]


@pytest.mark.parametrize("odd", [7, "text", [7, None], {"x": {"y": []}}, float("nan"), 10**400, None, True])
def test_whatever_a_task_writes_in_a_row_the_page_shows_the_others(odd: Any) -> None:
    """Also a browser takes the answer: it knows no NaN, and shows each text as one."""
    good = files_after(None, report(finding("/data/a", "growing")), run(1))
    whole = report(finding("/x", "unknown"), recoveries=[{"path": "/x", "outcome": "closed", "bytes_lost": 0}])
    whole |= {"unreadable": {"/x/y": "denied"}, "counts": {"open": 1, "conditions": {"unknown": 1}}, "stopped": ""}
    within = {"path": "/x/in", "at": f"{NOW.isoformat()}9", "report": whole}
    row = {**run(2), "path": "/x", "report": whole, "runs": [run(2)]}
    hostile = [{**row, name: odd} for name in row]
    hostile += [{**row, "report": {**whole, name: odd}} for name in whole]
    for name in ("findings", "recoveries"):
        hostile += [{**row, "report": {**whole, name: [{**whole[name][0], key: odd}]}} for key in whole[name][0]]
    hostile += [
        {**row, "report": {**whole, name: {key: odd}}} for name in ("counts", "unreadable") for key in whole[name]
    ]
    hostile += [{**row, "report": {**whole, "counts": {"conditions": {"unknown": odd}}}}]
    hostile += [{**row, "runs": [{**run(2), key: odd}]} for key in run(2)]
    for each in hostile:
        pages = files_page([each, within, {**each, "path": "/x/of/it"}, good])
        assert "/data" in [path["path"] for path in pages]
        json.dumps(pages, allow_nan=False)
        shown = [file[name] for path in pages for file in path["files"] for name in ("path", "condition", "why")]
        assert all(isinstance(text, str) for text in shown)


def test_long_paths_that_begin_alike_have_two_keys() -> None:
    long = "/data/" + "x" * 600
    assert key_of(FILES, "/data") == "files /data"
    assert len({key_of(FILES, f"{long}1"), key_of(FILES, f"{long}2")}) == 2
    assert len(key_of(FILES, long)) <= 512


def test_a_ticket_that_fails_comes_before_one_that_expires_sooner() -> None:
    fails = {
        **SEEN,
        "principal": "etl@A",
        "failures": 3,
        "expiry": "2026-03-02T00:00:00+00:00",
        "error": "password=hunter2",
    }
    alert = {**SEEN, "principal": "ops@A", "failures": 9, "alert": True, "expiry": "2026-03-03T00:00:00+00:00"}
    fresh = {**SEEN, "principal": "ann@A", "failures": 0, "expiry": "2026-03-01T13:00:00+00:00"}
    shown = tickets_of([fresh, fails, alert, {}])
    assert [row["principal"] for row in shown] == ["ops@A", "etl@A", "ann@A"]
    assert "hunter2" not in str(shown)


def test_the_worst_keytab_comes_first() -> None:
    rows = [
        {**SEEN, "principal": name, "severity": severity}
        for name, severity in (("a", None), ("b", "note"), ("c", "error"))
    ]
    assert [row["principal"] for row in keytabs_of(rows)] == ["c", "b", "a"]


def test_what_a_task_wrote_otherwise_of_tickets_and_keytabs_is_left_out() -> None:
    """Any task that names the cluster's asset may write there, and the browser reads fields of lists, and counts."""
    strange = {**SEEN, "principal": "etl@A", "expiry": "soon", "failures": "3", "alert": "no", "error": {"a": 1}}
    (ticket,) = tickets_of([strange, {**SEEN, "principal": 7}, {"principal": "ann@A", "at": "yesterday"}])
    assert (ticket["expiry"], ticket["failures"], ticket["alert"], ticket["error"]) == ("", 0, False, "")
    odd = {**SEEN, "principal": "etl@A", "kvno": 1e400, "findings": [7, {"words": ["a"]}], "streams": {"a": 1}}
    (keytab,) = keytabs_of([odd])
    assert (keytab["kvno"], keytab["streams"]) == (None, [])
    assert keytab["findings"] == [{"kind": "", "severity": "", "words": "", "remedy": ""}]


def test_a_number_that_no_browser_knows_is_left_out() -> None:
    """Other tasks store any number, and one in an answer takes the whole page away."""
    assert shown({"a": [float("nan"), -float("inf"), 1.5]}) == {"a": [None, None, 1.5]}
