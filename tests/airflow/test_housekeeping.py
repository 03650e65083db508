"""The housekeeping DAG: a daily dry run, and a form with which a person removes the files that it showed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.operators.housekeeping import HousekeepingOperator
from airflow_kstream.supervise.streams.checkpoint.ownership import release
from airflow_kstream.supervise.streams.folder.registry import stream_ids
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.airflow.declarations import Declarations, form
from tests.simulated.fleet import CONNECTION, Fleet

ONE = "{name: sales, credentials: {mode: ticket}, application: /j.py, checkpoints: [/c], airflow: {owner: ann}}"


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declarations:
    (tmp_path / CONNECTION).mkdir()
    (tmp_path / CONNECTION / "sales.yaml").write_text(ONE)
    return Declarations("streams", tmp_path, monkeypatch)


@pytest.fixture
def fleet(declared: Declarations, fleet: Fleet) -> Fleet:
    """Two stopped streams, one of which nobody declares."""
    fleet.declare("orders", "sales")
    for name in ("orders", "sales"):
        for _, app in fleet.generations(name):
            fleet.yarn.end(app.id)
        set_desired(fleet.run_of(name), DesiredState.STOPPED, "given up")
        release(fleet.run_of(name), fleet.specs[name].checkpoints, "stopped")
    fleet.hdfs.write(draft_of(fleet), "half")
    fleet.clock.ahead += timedelta(days=31)
    return fleet


def draft_of(fleet: Fleet) -> str:
    return f"{fleet.run_of('sales').id.folder}/.claim-0123456789ab"


class Kept:
    """What a failed task leaves in XCom."""

    def xcom_push(self, key: str, value: Any) -> None:
        self.report = value


def run(ti: Any = None, **fields: Any) -> dict[str, Any]:
    person = SimpleNamespace(run_type="manual", triggering_user_name="ann", dag_id="housekeeping-simulated")
    task = HousekeepingOperator(task_id="clean", cluster_conn_id=CONNECTION, **fields)
    return task.execute(cast("Context", {"dag_run": person, "ti": ti}))


def test_the_daily_run_removes_nothing_and_the_persons_run_what_it_showed(fleet: Fleet) -> None:
    before = dict(fleet.hdfs.files)
    shown = run()
    assert fleet.hdfs.files == before
    assert shown["may_go"] == {"draft": 1, "history": 0}
    assert fleet.told(f"would remove {draft_of(fleet)}") == 1
    assert list(shown["gone"]) == ["orders"]
    assert fleet.told("orders is gone: nobody declares it, and a person stopped it; as long as that is so, `hdfs") == 1
    assert fleet.gauges["kstream.simulated.cluster.state_leftovers"] == [2]
    done = run(dry_run=False)
    assert (done["paths"], done["removed"], done["gone"]) == (shown["paths"], 1, shown["gone"])
    assert fleet.told("ann wants to clean /kstream of what is older than 30d") == 1
    assert before.keys() - fleet.hdfs.files.keys() == {draft_of(fleet)}
    assert {stream.name for stream in stream_ids(fleet.session)} == {"orders", "sales"}


def test_what_can_not_be_removed_fails_the_task_and_keeps_its_report(fleet: Fleet) -> None:
    def refuse(request: str, path: str) -> None:
        if request == "delete":
            raise Denied("Permission denied: user=watcher", tried=f"delete {path}")

    fleet.hdfs.at_request = refuse
    kept = Kept()
    with pytest.raises(AirflowFailException, match="Permission denied: user=watcher"):
        run(kept, dry_run=False)
    assert kept.report["removed"] == 0


@pytest.mark.parametrize("fields", [{"older_than": "1h"}, {"older_than": "x"}, {"dry_run": "None"}, {"dry_run": None}])
def test_wrong_input_is_refused_before_anything_is_touched(fleet: Fleet, fields: dict[str, Any]) -> None:
    before = dict(fleet.hdfs.files)
    with pytest.raises(AirflowFailException):
        run(**fields)
    assert fleet.hdfs.files == before


def test_the_form_is_dry_by_default_and_the_dag_its_folders_owners(declared: Declarations) -> None:
    dag = declared.dags()[f"housekeeping-{CONNECTION}"]
    fields = form(dag)
    assert (fields["dry_run"].resolve(), fields["older_than"].resolve()) == (True, "30d")
    for name, value in (("dry_run", "no"), ("older_than", "a while"), ("older_than", None)):
        with pytest.raises(ParamValidationError):
            fields[name].resolve(value)
    assert (str(dag.schedule), dag.max_active_runs) == ("1 day, 0:00:00", 1)
    assert dag.tags == {"kstream", "housekeeping"}
    assert dag.get_task("clean").owner == "ann"
    assert "dry run" in str(dag.doc_md)
