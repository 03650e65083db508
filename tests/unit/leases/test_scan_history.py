"""The history of open files, read by another version: files that it does not understand are only checked again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.supervise.leases.scan_history import ScanHistory
from tests.simulated.servers import SimClock, SimHdfs

FOLDER, FILE = "/kstream/leases.me", "/kstream/leases.me/sightings.json"
START, MINUTE = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=1)
# Written by the code of commit 7cddc87, before these files had a version.
OLD = Path(__file__).with_name("sightings_of_7cddc87.json").read_text()


@pytest.fixture
def hdfs() -> SimHdfs:
    return SimHdfs(SimClock())


def history(hdfs: SimHdfs) -> ScanHistory:
    return ScanHistory(cast(Hdfs, hdfs), FOLDER)


def test_a_growth_that_the_first_version_saw_is_not_forgotten(hdfs: SimHdfs) -> None:
    hdfs.write(FILE, OLD)
    file = history(hdfs).load()["/data/a.tmp"]
    assert (file.last_growth, file.unchanged_for, file.checks) == (START + MINUTE, MINUTE, 3)


def test_what_is_saved_carries_its_version_and_is_read_back(hdfs: SimHdfs) -> None:
    hdfs.write(FILE, OLD)
    known = history(hdfs).load()
    history(hdfs).save(known.values())
    saved = json.loads(hdfs.read(FILE))
    assert saved["version"] == 2
    assert saved["files"][0].keys() == json.loads(OLD)[0].keys() - {"grew"} | {"last_growth"}
    assert history(hdfs).load() == known


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"version": 3, "files": []}', '{"files": []}', '[{"file": 1}]', "7"])
def test_what_cannot_be_understood_is_forgotten(hdfs: SimHdfs, text: str) -> None:
    hdfs.write(FILE, text)
    assert history(hdfs).load() == {}
