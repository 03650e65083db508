"""A folder's DAGs that look at all of its streams, in a real Airflow on the real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from airflow_kstream.dags.ids import stream_id
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from tests.live.airflow import CONNECTION, LiveAirflow
from tests.live.airflow_api import TaskRef
from tests.live.streams import cluster, rate_stream

DOCTOR, FLEET, HOUSEKEEPING, TOKENS, UNDECLARED = (
    f"{name}-{CONNECTION}" for name in ("doctor", "fleet", "housekeeping", "tokens", "undeclared")
)


@pytest.fixture
def session(minicluster: Minicluster) -> Iterator[ClusterSession]:
    with cluster(minicluster) as opened, open_session(opened, opened.watcher) as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def paused(airflow: LiveAirflow) -> Iterator[None]:
    yield
    for dag_id in (DOCTOR, FLEET, HOUSEKEEPING, TOKENS):
        airflow.api.pause_dag(dag_id)


def hands(airflow: LiveAirflow, dag_id: str, run: str) -> dict[str, dict[str, Any]]:
    """Return the instances of the mapped task by the names that the grid shows."""
    found = airflow.api.call("GET", f"/dags/{dag_id}/dagRuns/{quote(run, safe='')}/taskInstances")["task_instances"]
    return {view["rendered_map_index"]: view for view in found if view["task_id"] == "hand" and view["map_index"] >= 0}


def test_a_damaged_stream_is_one_red_square_with_its_name_and_its_way_out(
    airflow: LiveAirflow, session: ClusterSession
) -> None:
    damaged = StreamId("damaged", session.cluster.state_dir)
    session.hdfs.make_folder(damaged.folder, "755")
    session.hdfs.write(f"{damaged.folder}/gen-000001", "{{ no.template }}", permission="644")
    try:
        run = airflow.start(FLEET)
        assert airflow.end(FLEET, run) == "failed"
    finally:
        session.hdfs.delete(damaged.folder, recursive=True)
    shown = hands(airflow, FLEET, run)["damaged"]
    assert shown["state"] == "failed"
    assert shown["try_number"] == 1
    log = airflow.api.task_log(TaskRef(FLEET, run, "hand", shown["map_index"]), 1)
    assert "damaged: " in log
    assert "can't be understood" in log
    assert "Way out: remove the cause" in log

    again = airflow.start(FLEET)
    airflow.end(FLEET, again)
    assert airflow.api.task_instance(TaskRef(FLEET, again, "look")).state == "success"
    assert "damaged" not in hands(airflow, FLEET, again)


def test_the_doctor_is_red_for_what_is_new_and_green_for_what_it_knows(airflow: LiveAirflow) -> None:
    first = airflow.scheduled(DOCTOR)
    assert airflow.end(DOCTOR, first) == "failed"
    ref = TaskRef(DOCTOR, first, "examine")
    log = airflow.api.task_log(ref, 1)
    assert "rm-privileges: NodeManagers aggregate logs" in log
    assert "yarn.resourcemanager.proxy-user-privileges.enabled=false (yarn-default.xml)" in log
    found = {one["id"]: one for one in airflow.api.xcom_entry(ref, "return_value")["new"]}
    assert found["rm-privileges"]["severity"] == "warning"

    again = airflow.start(DOCTOR)
    assert airflow.end(DOCTOR, again) == "success"
    assert airflow.api.xcom_entry(TaskRef(DOCTOR, again, "examine"), "return_value")["new"] == []


def test_housekeeping_is_a_dry_run_unless_a_person_says_otherwise(
    airflow: LiveAirflow, session: ClusterSession
) -> None:
    before = session.hdfs.names(session.cluster.state_dir)
    run = airflow.start(HOUSEKEEPING)
    assert airflow.end(HOUSEKEEPING, run) == "success"
    ref = TaskRef(HOUSEKEEPING, run, "clean")
    assert airflow.api.xcom_entry(ref, "return_value")["dry_run"] is True
    assert "nothing was removed" in airflow.api.task_log(ref, 1)

    real = airflow.start(HOUSEKEEPING, {"dry_run": False, "older_than": "60d"})
    assert airflow.end(HOUSEKEEPING, real) == "success"
    assert airflow.api.xcom_entry(TaskRef(HOUSEKEEPING, real, "clean"), "return_value")["dry_run"] is False
    assert "wants to clean" in airflow.api.task_log(TaskRef(HOUSEKEEPING, real, "clean"), 1)
    assert session.hdfs.names(session.cluster.state_dir) >= before


def test_a_token_file_that_is_not_there_is_a_red_square(airflow: LiveAirflow) -> None:
    declared = {"users": ["nobody"], "files": ["hdfs:///user/nobody/etl.token"], "every": "30d"}
    airflow.write_declaration("tokens", CONNECTION, declared)
    run = airflow.start(TOKENS)
    assert airflow.end(TOKENS, run) == "failed"
    [(name, shown)] = hands(airflow, TOKENS, run).items()
    assert (name, shown["state"]) == ("hdfs:///user/nobody/etl.token", "failed")

    airflow.write_declaration("tokens", CONNECTION, {"users": ["nobody"], "every": "30d"})
    quiet = airflow.start(TOKENS)
    assert airflow.end(TOKENS, quiet) == "success"
    assert airflow.api.xcom_entry(TaskRef(TOKENS, quiet, "look"), "return_value") == []
    assert hands(airflow, TOKENS, quiet) == {}


def test_edited_policies_are_stored_where_triggers_read_them(airflow: LiveAirflow, minicluster: Minicluster) -> None:
    """Also those of a stream whose DAG nobody unpaused; its row goes with its file."""
    stream = rate_stream("edited", TicketCredentials()).to_mapping()

    def stored() -> list[str]:
        run = airflow.start(UNDECLARED)
        airflow.end(UNDECLARED, run)
        # Streams of other tests may have ended meanwhile.
        looked = airflow.api.task_log(TaskRef(UNDECLARED, run, "look_after"), 1)
        assert "edited is declared no longer" not in looked
        task = TaskRef(UNDECLARED, run, "policy_edits")
        assert airflow.api.task_instance(task).state == "success", airflow.api.task_log(task, 1)
        names: list[str] = airflow.api.xcom_entry(task, "return_value")
        return [name for name in names if name == "edited"]

    def declare(**changed: object) -> None:
        airflow.write_declaration("streams", f"{CONNECTION}/edited", stream | changed)

    declare()
    airflow.await_parsed(stream_id(CONNECTION, "edited"))
    # The DAG is not paused, so a run of its schedule may have been first.
    stored()
    assert stored() == []
    declare(restart={"max_age": "3d"})
    assert stored() == ["edited"]
    (airflow.root / "streams" / CONNECTION / "edited.yaml").unlink()
    assert stored() == []
    declare(restart={"max_age": "3d"})
    assert stored() == ["edited"]
    (airflow.root / "streams" / CONNECTION / "edited.yaml").unlink()
    assert stored() == []
