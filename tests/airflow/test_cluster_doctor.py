"""The doctor's task: it reports what is new, tells each finding once, and obeys what a person accepted.

What it finds is simulated: tests/real/cluster/test_doctor.py finds it on real servers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.finding import Concern, DoctorReport, Finding, NotChecked, Severity, UndecidedCheck
from airflow_kstream.operators.cluster_doctor import ClusterDoctorOperator
from tests.airflow import notifiers
from tests.airflow.declarations import Declarations
from tests.simulated.fleet import CONNECTION, Fleet

STREAM = "{name: sales, credentials: {mode: ticket}, application: /j.py, checkpoints: [/c], airflow: {owner: ann}}"
LOST = Finding(
    "rm-privileges",
    Severity.WARNING,
    "logs are deleted unread",
    "yarn.resourcemanager.proxy-user-privileges.enabled=true",
    "http://rm: false",
    "YARN-2704",
    concerns=(Concern("orders", "its logs are lost if it ends"),),
)
NOTE = replace(LOST, check="speculation", severity=Severity.NOTE, concerns=())
AWAY = UndecidedCheck("rm-privileges", NotChecked("the configuration", "http://rm is away"))
ACCEPTED = "accepted: [{finding: rm-privileges, by: jane, why: known, until: 2099-01-01}]"

pytestmark = pytest.mark.usefixtures("recording")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where this worker notes what it told while HDFS is away."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))


class Kept:
    """What a failed task leaves in XCom."""

    report: Any = None

    def xcom_push(self, key: str, value: Any) -> None:
        self.report = value


class Doctor(ClusterDoctorOperator):
    found: DoctorReport

    def _examined(self) -> DoctorReport:
        return self.found


def examine(report: DoctorReport, **fields: Any) -> tuple[str, Any]:
    """Run the task with what is found; return its failure, empty if it is green, and its result."""
    kept = Kept()
    task = Doctor(task_id="examine", cluster_conn_id=CONNECTION, **fields)
    task.found = report
    try:
        return "", task.execute(cast("Context", {"ti": kept}))
    except AirflowFailException as error:
        return str(error), kept.report


def test_a_finding_makes_one_run_red_and_is_one_event(fleet: Fleet) -> None:
    found, nothing = DoctorReport((LOST, NOTE)), DoctorReport((), passed=("yarn-acls",))
    failures = [examine(report)[0] for report in (nothing, found, found, nothing, found)]
    assert failures == ["", "new: rm-privileges", "", "", "new: rm-privileges"]
    begin, end, again = (text for _, text in notifiers.told)
    assert begin == again
    assert begin.startswith(
        "simulated: something will go wrong (rm-privileges): rm-privileges: logs are deleted unread (orders"
    )
    assert end.startswith("simulated: it will no longer go wrong (rm-privileges), after ")
    assert fleet.gauges["kstream.simulated.cluster.findings"] == [0, 2, 2, 0, 2]


def test_a_finding_of_one_more_stream_is_new_for_that_stream(fleet: Fleet) -> None:
    more = replace(LOST, concerns=(*LOST.concerns, Concern("clicks", "its logs are lost if it ends")))
    examine(DoctorReport((LOST,)))
    failure, result = examine(DoctorReport((more,)))
    assert failure == "new: rm-privileges"
    assert [concern["stream"] for concern in result["new"][0]["concerns"]] == ["clicks"]
    assert len(notifiers.told) == 1


def test_a_server_that_is_away_neither_ends_a_finding_nor_begins_it_again(fleet: Fleet) -> None:
    found, away = DoctorReport((LOST,)), DoctorReport((), (AWAY,), passed=("yarn-acls",))
    failures = [examine(report)[0] for report in (found, away, found)]
    assert failures == ["new: rm-privileges", "", ""]
    assert len(notifiers.told) == 1
    assert fleet.told("rm-privileges: the configuration could not be asked, because http://rm is away") == 1


@pytest.mark.parametrize("row", [{}, None, "rubbish", {"rm-privileges:x": [], "rm-privileges": ["orders"]}])
def test_a_row_that_somebody_wrote_makes_no_run_red_and_ends_no_event(fleet: Fleet, row: object) -> None:
    found, away = DoctorReport((LOST,)), DoctorReport((), (AWAY,), passed=("yarn-acls",))
    failures = []
    for report in (found, found, away, found):
        failures.append(examine(report)[0])
        fleet.store[asset_uri(CONNECTION), "known_findings"] = row
    assert failures == ["new: rm-privileges", "", "", ""]
    assert len(notifiers.told) == 1
    examine(DoctorReport((), passed=("yarn-acls",)))
    assert len(notifiers.told) == 2


def test_an_hdfs_that_is_away_makes_nothing_new(fleet: Fleet) -> None:
    def away(request: str, path: str) -> None:
        raise Unavailable(path)

    examine(DoctorReport((LOST,)))
    there, fleet.hdfs.at_request = fleet.hdfs.at_request, away
    with pytest.raises(Unavailable):
        examine(DoctorReport((LOST,)))
    fleet.hdfs.at_request = there
    assert examine(DoctorReport((LOST,)))[0] == ""
    # Once more while nobody could read that it was told: what might be new is not kept from people.
    assert len(notifiers.told) == 2


def test_a_finding_while_hdfs_is_away_is_an_event_and_in_the_log(fleet: Fleet) -> None:
    def away(request: str, path: str) -> None:
        raise Unavailable(path)

    fleet.hdfs.at_request = away
    for _ in range(2):
        with pytest.raises(Unavailable):
            examine(DoctorReport((LOST,)))
    assert len(notifiers.told) == 1
    assert fleet.told("logs are deleted unread") == 2
    assert fleet.gauges["kstream.simulated.cluster.findings"] == [1, 1]


def test_a_cluster_that_can_not_be_asked_at_all_is_tried_again(fleet: Fleet) -> None:
    with pytest.raises(Unavailable, match="the servers told nothing: rm-privileges: the configuration could not"):
        examine(DoctorReport((), (AWAY,), blind=True))


def test_what_a_person_accepted_is_no_news(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / f"{CONNECTION}.yaml").write_text(ACCEPTED)
    monkeypatch.setenv("AIRFLOW__KSTREAM__DOCTOR_FOLDER", str(tmp_path))
    assert examine(DoctorReport((LOST,)))[0] == ""
    assert notifiers.told == []
    (tmp_path / f"{CONNECTION}.yaml").write_text("accepted: [{finding: x}]")
    assert "accepted.0.by is missing" in examine(DoctorReport((LOST,)))[0]


def test_a_task_that_reports_everything_is_red_for_as_long_as_anything_is_found(fleet: Fleet) -> None:
    failures = [examine(DoctorReport((LOST,)), only_new=False)[0] for _ in range(2)]
    assert failures == ["rm-privileges", "rm-privileges"]


def test_each_folder_has_its_dag_with_the_options_of_its_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / CONNECTION).mkdir()
    (tmp_path / CONNECTION / "sales.yaml").write_text(STREAM)
    monkeypatch.setenv("AIRFLOW__KSTREAM__DOCTOR_EVERY", "6h")
    dags = Declarations("streams", tmp_path, monkeypatch).dags()
    dag = dags[f"doctor-{CONNECTION}"]
    others = {dags[f"{name}-{CONNECTION}"].doc_md for name in ("fleet", "housekeeping", "control")}
    assert len({*others, dag.doc_md}) == 4, "each tells of itself alone"
    assert (str(dag.schedule), dag.max_active_runs, dag.tags) == ("6:00:00", 1, {"kstream", "doctor"})
    assert dag.get_task("examine").owner == "ann"
    assert "doctor_folder" in str(dag.doc_md)
