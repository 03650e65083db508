"""The history of open files between runs: files that can't be understood are only checked again."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.leases.open_file import FileHistory, FileState, OpenFile
from airflow_kstream.supervise.leases.survey import ScanHistory
from tests.simulated.servers import SimClock, SimHdfs

FOLDER, FILE = "/kstream/leases.me", "/kstream/leases.me/sightings.json"
START, MINUTE, MONTH = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=1), timedelta(days=30)
GROWN = FileHistory(
    OpenFile("/data/a.tmp", 1, "DFSClient_NONMAPREDUCE_1_30", "worker7"),
    FileState("/data/a.tmp", 1, "streamer", START, is_open=True, length=10, visible_length=10),
    first_seen=START,
    steady_since=START + MINUTE,
    steady_until=START + 2 * MINUTE,
    checks=3,
    last_growth=START + MINUTE,
)


@pytest.fixture
def hdfs() -> SimHdfs:
    return SimHdfs(SimClock())


def history(hdfs: SimHdfs) -> ScanHistory:
    return ScanHistory(cast(Hdfs, hdfs), FOLDER)


def test_what_is_saved_carries_its_version_and_is_read_back(hdfs: SimHdfs) -> None:
    history(hdfs).save([GROWN], START)
    assert json.loads(hdfs.read(FILE))["version"] == 2
    assert history(hdfs).load() == {"/data/a.tmp": GROWN}


def test_a_file_that_no_scan_has_measured_for_a_month_is_forgotten(hdfs: SimHdfs) -> None:
    later = replace(GROWN, file=replace(GROWN.file, path="/data/b.tmp"), steady_until=GROWN.steady_until + MINUTE)
    history(hdfs).save([GROWN, later], GROWN.steady_until + MONTH)
    assert history(hdfs).load().keys() == {"/data/a.tmp", "/data/b.tmp"}
    history(hdfs).save([GROWN, later], later.steady_until + MONTH)
    assert history(hdfs).load().keys() == {"/data/b.tmp"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 3, "files": []}', '{"files": []}', "7"])
def test_what_cannot_be_understood_is_forgotten(hdfs: SimHdfs, text: str) -> None:
    hdfs.write(FILE, text)
    assert history(hdfs).load() == {}
