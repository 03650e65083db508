"""The journal of recoveries, read by another version: lines of one version hide no lines of another."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.supervise.leases.journal import Journal, JournalRecord, read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from tests.simulated.servers import SimClock, SimHdfs

FOLDER = "/kstream/leases.me"
NAME = f"{FOLDER}/audit/20260101T000000Z-abcdef01-000000"
INTENT = {
    "version": 2,
    "run": "20260101T000000Z-abcdef01",
    "who": "me@here",
    "principal": "me@R",
    "action": "recover",
    "at": datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
    "path": "/data/a.tmp",
    "holder": "DFSClient_1",
    "reason": "it is stuck",
}
RESULT = {**INTENT, "outcome": "closed", "why": "as asked"}


def read(intents: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[JournalRecord]:
    hdfs = SimHdfs(SimClock())
    for kind, lines in (("intents", intents), ("results", results)):
        hdfs.write(f"{NAME}-{kind}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return list(read_journal(OwnFiles(cast(Hdfs, hdfs)), FOLDER))


@pytest.mark.parametrize("version", [1, 3])
def test_lines_of_another_version_are_read(version: int) -> None:
    (record,) = read([{**INTENT, "version": version}], [{**RESULT, "version": version}])
    assert (record.outcome, record.why, record.reason) == (Outcome.CLOSED, "as asked", "it is stuck")


def test_an_outcome_that_this_version_does_not_know_is_unconfirmed() -> None:
    (record,) = read([{**INTENT, "version": 3}], [{**RESULT, "version": 3, "outcome": "teleported"}])
    assert (record.outcome, record.why) == (Outcome.UNCONFIRMED, "as asked")


def test_a_line_without_what_makes_a_record_hides_no_other() -> None:
    records = read([{"version": 3, "file": "/b"}, {**INTENT, "colour": "blue"}], [{"outcome": "closed"}])
    assert [record.path for record in records] == ["/data/a.tmp"]


@pytest.mark.parametrize("unreadable", ["9" * 5000, "[" * 100_000, "{"])
def test_a_line_that_nobody_can_read_hides_no_other(unreadable: str) -> None:
    hdfs = SimHdfs(SimClock())
    hdfs.write(f"{NAME}-intents.jsonl", f"{unreadable}\n{json.dumps(INTENT)}\n")
    records = read_journal(OwnFiles(cast(Hdfs, hdfs)), FOLDER)
    assert [record.path for record in records] == ["/data/a.tmp"]


def test_each_line_that_is_written_carries_its_version() -> None:
    hdfs = SimHdfs(SimClock())
    Journal.begin(cast(Hdfs, hdfs), FOLDER, Identity("me@R", "/k")).asked({"/data/a.tmp": None}, "it is stuck")
    (text,) = [content for content, _ in hdfs.files.values()]
    assert json.loads(text)["version"] == 2
