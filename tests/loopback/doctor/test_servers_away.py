"""The doctor where nobody answers: it concludes nothing, and no look fails for it."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.policy.doctor.checks import CHECKS
from airflow_kstream.supervise.doctor.examination import foretell
from tests.commands import ran
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.spark_homes import SparkHome

AWAY = replace(CLUSTER, resourcemanagers=("http://127.0.0.1:1",), namenodes=("http://127.0.0.1:1",))


def test_servers_that_are_away_leave_everything_undecided_and_the_command_fails(
    cluster_file: Path, tmp_path: Path
) -> None:
    client = SparkHome(tmp_path / "spark").made().submit
    result = ran("doctor", "--cluster", str(cluster_file), "--json", "--spark-submit", client)
    assert result.code == 1
    undecided = {one["check"]: one["fact"] for one in result.data["undecided"]}
    found = {one["check"] for one in result.data["findings"]}
    assert {*undecided, *found, "canonical-names", "enctypes", "kdc"} == {row.id for row in CHECKS}
    assert result.data["blind"] is True
    assert "http://localhost:1" in undecided["rm-privileges"]["why"]
    assert [one["id"] for one in result.data["findings"]] == ["keytabs:watcher@EXAMPLE.COM unreadable"]


def test_what_could_not_be_asked_is_shown_with_its_reason(cluster_file: Path) -> None:
    result = ran("doctor", "--cluster", str(cluster_file))
    assert "could not be asked, because" in result.words


@pytest.mark.parametrize(
    ("changes", "stream"), [({}, "nobody"), ({"yarn": None}, "")], ids=["no such stream", "a defect of ours"]
)
def test_no_error_of_an_examination_reaches_a_look(
    caplog: pytest.LogCaptureFixture, changes: dict[str, Any], stream: str
) -> None:
    hdfs = SimHdfs(SimClock())
    hdfs.write(f"{CLUSTER.state_dir}/a-file", "")
    session = replace(session_of(hdfs, SimYarn(hdfs.clock)), cluster=AWAY, **changes)
    with caplog.at_level(logging.WARNING):
        assert foretell(session, stream) == {}
    assert "could not be examined" in caplog.text
