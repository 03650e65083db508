"""Stuck files in a real Airflow, on the real cluster: noticed, closed by the scheduled DAG, readable to their end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from getpass import getuser
from typing import TYPE_CHECKING, Any, cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Conflict, InvalidInput
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from tests.live.airflow import CONNECTION, LiveAirflow
from tests.live.airflow_api import TaskRef
from tests.live.lease_commands import await_leases_worn_off
from tests.live.streams import await_that, cluster, fields
from tests.live.writers import Writer, flink_like_bucket, leave_open, pattern, writer
from tests.live.writers.hadoop_says import content, open_files

if TYPE_CHECKING:
    from airflow.sdk import Context

FOLDER = f"/user/{getuser()}/lease-dags"
LANDING, OTHER = f"{FOLDER}/landing zone", f"{FOLDER}/other"
STUCK = [f"{LANDING}/part-{number}.in-progress" for number in range(20)] + [f"{OTHER}/part-0-6"]
LIVING = f"{FOLDER}-living"
LEAKED = f"{LIVING}/leaked"
READABLE = "/tmp/lease-dags/readable"
# DAGs that read and watch; the shipped DAG does the recovery.
READERS = f'''
from datetime import timedelta

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_kstream.sensors.leases import HdfsOpenFileSensor
from airflow_kstream.triggers.leases import OpenFileEventTrigger

common = dict(cluster_conn_id="{CONNECTION}", path="{FOLDER}", poke_interval=2, timeout=300, deferrable=True)
# A busy scheduler may take the end of a worker that deferred for that of the resumed task, which costs a try.
again = {{"retries": 3, "retry_delay": timedelta(seconds=1)}}

with DAG("stuck", schedule=None, default_args={{"owner": "a-team", **again}}):
    HdfsOpenFileSensor(task_id="wait", condition=dict(until="stuck", at_least={len(STUCK)}, quiet="2s"), **common)

with DAG("closed", schedule=None, default_args=again):
    HdfsOpenFileSensor(task_id="wait", condition={{"until": "none"}}, **common)

with DAG("refused", schedule=None):
    HdfsOpenFileSensor(task_id="wait", **(common | {{"path": "relative"}}))

watcher = OpenFileEventTrigger("{CONNECTION}", "{LANDING}", quiet="2s", every_seconds=2.0)
landing = Asset("landing", watchers=[AssetWatcher(name="landing", trigger=watcher)])

with DAG("alarmed", schedule=[landing]):

    @task
    def tell(triggering_asset_events=None):
        return [event.extra["payload"] for event in triggering_asset_events[landing]]

    tell()
'''
RECOVERY = f"leases-{CONNECTION}"
DECLARATION = {"paths": [LANDING, OTHER], "min_age": "1s", "every": "20s"}


@dataclass(frozen=True)
class LeaseAirflow(LiveAirflow):
    """An Airflow whose DAGs are the shipped one for leases and those of READERS."""

    def run(self, dag_id: str) -> TaskRef:
        return TaskRef(dag_id, self.start(dag_id), "wait")

    def recover_by_hand(self, form: dict[str, Any]) -> dict[str, Any]:
        """Start the shipped DAG with this form, and return what its one recovery says."""
        run = self.start(RECOVERY, form)
        assert self.end(RECOVERY, run) == "success"
        [ref] = [task.ref for task in self.api.task_instances(RECOVERY, run) if task.ref.task_id == "recover"]
        report: dict[str, Any] = self.api.xcom_entry(ref, "return_value")
        return report

    def reports(self, dag_id: str) -> list[dict[str, Any]]:
        """Return the results so far of every mapped task that succeeded."""
        tasks = [task for run in self.api.dag_run_states(dag_id) for task in self.api.task_instances(dag_id, run)]
        done = [task.ref for task in tasks if task.ref.task_id == "recover" and task.state == "success"]
        return [self.api.xcom_entry(ref, "return_value") for ref in done]


@pytest.fixture(scope="module")
def airflow(live: LiveAirflow) -> Iterator[LeaseAirflow]:
    live.write_declaration("leases", CONNECTION, DECLARATION)
    with live.dag_file("lease_readers", READERS):
        # Before there is a stuck file: an asset's event starts no run of a DAG that is paused.
        live.unpause("alarmed")
        yield LeaseAirflow(live.home, live.api, live.root, live.metrics, live.components)
        live.api.pause_dag(RECOVERY)


@pytest.fixture(scope="module")
def living(minicluster: Minicluster, airflow: LeaseAirflow) -> Iterator[Writer]:
    """A client that leaks a file in the one declared folder, and goes on with another elsewhere."""
    airflow.write_declaration("leases", CONNECTION, DECLARATION | {"paths": [LIVING], "every": "30d"})
    with writer(minicluster) as client:
        client.leave(LEAKED, 500)
        client.leave(f"{FOLDER}-other/kept", 10)
        client.abandon(LEAKED)
        yield client


@pytest.fixture(scope="module")
def stuck(minicluster: Minicluster) -> Iterator[list[str]]:
    # One holder for each file: a probe or recovery of one file of a dead holder renews its lease on the others.
    leave_open(minicluster, STUCK[:-1], size=1000)
    flink_like_bucket(minicluster, OTHER, valid_length=700, flushed=1000)
    yield STUCK
    with cluster(minicluster) as found:
        hdfs = Hdfs(found.namenodes, found.watcher, found.tls)
        for folder in (FOLDER, LIVING, f"{FOLDER}-other"):
            hdfs.delete(folder, recursive=True)
        hdfs.close()


def test_the_scheduled_dag_makes_stuck_files_of_a_killed_writer_readable(
    minicluster: Minicluster, airflow: LeaseAirflow, stuck: list[str]
) -> None:
    """The alarm rings, those who read wait, the DAG closes the files by itself, and the readers get every byte.

    Of a native writer's many files, and of a Flink part file that was renamed while it was open.
    """
    noticed, readers = airflow.run("stuck"), airflow.run("closed")
    airflow.await_state(readers, "deferred")
    airflow.await_state(noticed, "success")
    assert airflow.api.xcom_entry(noticed, "return_value")["stuck"] == len(stuck)
    # Once the files are closed there is nothing to be alarmed of.
    await_that(lambda: set(_alarming(airflow)) >= set(stuck[:-1]), "the alarms name every file")

    airflow.unpause(RECOVERY)
    await_that(lambda: open_files(minicluster, FOLDER) == {}, "the scheduled DAG closes every file")
    assert [content(minicluster, path) for path in stuck] == [pattern(1000)] * len(stuck)
    airflow.await_state(readers, "success")

    await_that(lambda: _closed(airflow) == len(stuck), "the runs report every file")
    assert {report["counts"]["bytes_lost"] for report in airflow.reports(RECOVERY)} == {0}
    assert "failed" not in airflow.api.dag_run_states(RECOVERY).values()


def test_an_asset_is_alarmed_once_for_each_file_that_becomes_stuck(airflow: LeaseAirflow, stuck: list[str]) -> None:
    assert sorted(_alarming(airflow)) == sorted(stuck[:-1])
    assert {alarm["cluster"] for alarm in _alarms(airflow)} == {CONNECTION}


def test_a_person_who_runs_the_dag_by_hand_gets_a_dry_run_with_a_plan(
    minicluster: Minicluster, airflow: LeaseAirflow, living: Writer
) -> None:
    report = airflow.recover_by_hand(
        {"dry_run": True, "paths": [LIVING, ""], "patterns": None, "allowed": [""], "min_age": "0s"}
    )

    assert (report["run_id"], report["recoveries"]) == (None, [])
    assert report["plan"] == {LEAKED: "probe its holder, and recover it if the holder is dead"}


def test_a_person_who_runs_the_dag_by_hand_approves_a_leaked_file_by_name(
    minicluster: Minicluster, airflow: LeaseAirflow, living: Writer
) -> None:
    report = airflow.recover_by_hand({"paths": [LIVING], "min_age": "0s", "leak_after": "1s", "approve": [LEAKED]})

    assert [(row["path"], row["bytes_lost"]) for row in report["recoveries"]] == [(LEAKED, 0)]
    assert "admin approved it" in report["recoveries"][0]["reason"]
    assert content(minicluster, LEAKED) == pattern(500)


def test_a_person_who_runs_the_dag_by_hand_reaches_no_other_folder(airflow: LeaseAirflow, living: Writer) -> None:
    run = airflow.start(RECOVERY, {"dry_run": True, "paths": ["/etc"], "min_age": "0s"})

    assert airflow.end(RECOVERY, run) == "failed"
    [ref] = [task.ref for task in airflow.api.task_instances(RECOVERY, run) if task.ref.task_id == "recover"]
    assert f"/etc lies in none of the declared paths, which are {LIVING}" in airflow.api.task_log(ref, 1)


def test_the_form_refuses_what_is_wrong(airflow: LeaseAirflow) -> None:
    with pytest.raises(InvalidInput, match="min_age"):
        airflow.api.trigger_dag_run(RECOVERY, {"min_age": "soon"})


def test_what_no_waiting_can_change_fails_the_sensor_with_its_reason(airflow: LeaseAirflow) -> None:
    task = airflow.run("refused")
    airflow.await_state(task, "failed")

    assert "absolute HDFS path" in airflow.api.task_log(task, 1)


def test_a_task_fails_with_the_reason_when_its_principal_may_not_probe_the_holder(
    minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Airflow is running. The file is old enough and idle, so there is no good reason to leave it open."""
    leave_open(minicluster, [READABLE], size=10)
    await_leases_worn_off(minicluster)
    stranger = fields(minicluster, "watcher", state_dir="/user/watcher")
    extra = {name: value for name, value in asdict(stranger).items() if value}
    monkeypatch.setenv("AIRFLOW_CONN_STRANGER", json.dumps({"conn_type": "kstream", "extra": extra}))
    context = _Context()

    with pytest.raises(Conflict, match=r"1 files were not recovered.*Permission denied: user=watcher, access=WRITE"):
        _recovery(min_age="0s").execute(cast("Context", context))
    report = context.pushed["return_value"]
    assert report["counts"]["unprobed"] == 1
    assert "could not determine" in report["plan"][READABLE]

    young = _recovery(min_age="1h").execute(cast("Context", context))
    assert young["counts"]["conditions"] == {"young": 1}
    assert open_files(minicluster, READABLE) != {}


def _recovery(**more: Any) -> HdfsLeaseRecoverOperator:
    request = {"settle": "1s", **more}
    return HdfsLeaseRecoverOperator(task_id="recover", cluster_conn_id="stranger", path=READABLE, request=request)


class _Context(dict[str, Any]):
    """A task's context of a run whose XComs are kept here."""

    run_id = "by hand"
    run_type, triggering_user_name = "manual", "ada"

    def __init__(self) -> None:
        super().__init__()
        self.pushed: dict[str, Any] = {}

    def __missing__(self, key: str) -> Any:
        return self

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def _closed(airflow: LeaseAirflow) -> int:
    return sum(report["counts"]["outcomes"].get("closed", 0) for report in airflow.reports(RECOVERY))


def _alarming(airflow: LeaseAirflow) -> list[str]:
    return [path for alarm in _alarms(airflow) for path in alarm["newly_stuck"]]


def _alarms(airflow: LeaseAirflow) -> list[dict[str, Any]]:
    runs = [run for run, state in airflow.api.dag_run_states("alarmed").items() if state == "success"]
    return [alarm for run in runs for alarm in airflow.api.xcom_entry(TaskRef("alarmed", run, "tell"), "return_value")]
