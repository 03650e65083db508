"""Evidence of a stall, as Flink's engine takes it from a JobManager's pages.

flink_hanging.json was recorded from standalone JobManagers of 1.20.3 and 2.1.1, whose jobs slept in a `map` on purpose;
most threads are cut, ids and the names of classes replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.pulse.heartbeat import overlong_batches
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import start_from
from airflow_kstream.supervise.streams.pulse.evidence import Evidence, take_evidence
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.flink import FLINK_SPEC, FlinkLife
from tests.simulated.life import Life
from tests.simulated.servers import SimYarn
from tests.simulated.strange_servers import Answer, StrangeServer, said, serving

RECORDED = json.loads((Path(__file__).parents[1] / "clients" / "flink_hanging.json").read_text())
SETTINGS = json.loads((Path(__file__).parents[1] / "clients" / "flink_answers.json").read_text())["1.20.3"][
    "/jobs/00000000000000000000000000000abc/checkpoints/config"
]
POLICY, LIMIT = HeartbeatPolicy(on_stall=OnStall.RESTART), timedelta(minutes=20)
HANGS = "sleeps, at com.example.Rows$Waits.map(Rows.java:30)"
CHAIN = "Source: counted -> waits -> files: Writer -> files: Committer"
TM = "container_e01_1700000000000_0001_01_000002"


@dataclass
class Job:
    """A stream of Flink's that runs, and its JobManager's pages. Each answer on its vertices is younger."""

    life: Life
    application: str
    server: StrangeServer
    recorded: dict[str, Any]
    told: list[str] = field(default_factory=list)
    answers: int = 0
    passes: int = 0

    def evidence(self) -> Evidence:
        spec = FlinkStreamSpec("orders", KeytabCredentials("a@B", keytab="/k"), "hdfs:///a.jar", ("/flink/orders",))
        run = replace(self.life.run, spec=spec, engine=FlinkEngine())
        return take_evidence(run, self.life.yarn.application(self.application), 1, self.told.append)

    def page(self, path: str, answer: Any) -> None:
        shown = answer if isinstance(answer, Answer) or callable(answer) else said(answer)
        self.server.script[f"/proxy/{self.application}{path}"] = shown

    def runs(self, kind: str) -> None:
        shown = self.recorded[kind]
        for path in ("/taskmanagers", "/jobmanager/thread-dump"):
            self.page(path, self.recorded[path])
        self.page("/jobs/overview", {"jobs": [{"jid": shown["job"]["jid"]}]})
        self.page(f"/jobs/{shown['job']['jid']}", lambda: said(self._job(shown["job"])))
        self.page(f"/jobs/{shown['job']['jid']}/checkpoints/config", SETTINGS)
        self.page(f"/taskmanagers/{TM}/thread-dump", shown["thread-dump"])
        for vertex, known in shown["metrics"].items():
            base = f"/jobs/{shown['job']['jid']}/vertices/{vertex}/subtasks/metrics"
            self.page(base, known["names"])
            self.page(f"{base}?agg", lambda sums=known["sums"]: said(self._sums(sums)))

    def _job(self, body: dict[str, Any]) -> dict[str, Any]:
        self.answers += 1
        first, *others = body["vertices"]
        times = first["metrics"] | {"accumulated-busy-time": 1000.0 * self.answers}
        return body | {"vertices": [first | {"metrics": times}, *others]}

    def _sums(self, sums: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one | {"sum": one["sum"] + self.passes * self.answers} for one in sums]


@pytest.fixture(params=RECORDED)
def job(life: Life, request: pytest.FixtureRequest) -> Iterator[Job]:
    with serving({}) as server:
        yarn = SimYarn(life.clock, address=server.address)
        life.use(life.hdfs, yarn=yarn)
        life.begin()
        job = Job(life, list(yarn.apps)[-1], server, RECORDED[request.param])
        yarn.containers = (LoggedContainer(TM, "http://node7:8042", "orders"),)
        job.runs("chained")
        yield job


def test_a_task_that_sleeps_in_a_function_of_the_job_is_what_is_stuck(job: Job) -> None:
    found = job.evidence()
    assert [str(each) for each in found.still.stuck] == [f"TaskManager 2 on 127.0.0.1, task {CHAIN} (1/1)#0: {HANGS}"]
    assert found.still.hanging == found.still.stuck
    assert (found.dumped, found.moves) == (True, False)
    assert f"{CHAIN} [e5a72f35]: waits.numRecordsIn=" in found.progress
    assert job.told[-1] == f"took thread dump 3 of 3 of {job.application}: 2 processes"


def test_a_source_that_waits_for_room_behind_a_task_that_hangs_is_not_stuck(job: Job) -> None:
    job.runs("keyed")
    chain = CHAIN.removeprefix("Source: counted -> ")
    assert [each.what for each in job.evidence().still.stuck] == [f"task {chain} ({n}/2)#0" for n in (1, 2)]


def test_a_job_that_counts_records_meanwhile_moves(job: Job) -> None:
    job.passes = 1
    found = job.evidence()
    assert (found.dumped, found.moves) == (True, True)


@pytest.mark.parametrize("silent", ["names", "times"])
def test_nothing_is_stuck_while_the_jobmanager_has_no_new_counts(job: Job, silent: str) -> None:
    shown = job.recorded["chained"]
    if silent == "names":
        (vertex,) = shown["metrics"]
        job.page(f"/jobs/{shown['job']['jid']}/vertices/{vertex}/subtasks/metrics", [])
    else:
        job.page(f"/jobs/{shown['job']['jid']}", shown["job"])
    found = job.evidence()
    assert (found.dumped, found.still.stuck) == (False, ())
    assert "does not tell whether its job reads records" in found.still.doubt
    assert [str(each) for each in found.still.hanging] == [f"TaskManager 2 on 127.0.0.1, task {CHAIN} (1/1)#0: {HANGS}"]


def test_nothing_is_stuck_while_a_task_restores_its_state(job: Job) -> None:
    shown = job.recorded["chained"]["job"]
    job.page(f"/jobs/{shown['jid']}", shown | {"vertices": [shown["vertices"][0] | {"status": "INITIALIZING"}]})
    found = job.evidence()
    assert (found.dumped, found.still.stuck) == (False, ())
    assert "whether it hangs is open: not all of the job's tasks run" in found.doubts()


def test_a_job_without_taskmanagers_has_no_task_to_name(job: Job) -> None:
    shown = job.recorded["chained"]["job"]
    job.page("/taskmanagers", {"taskmanagers": []})
    job.page(f"/jobs/{shown['jid']}", shown | {"vertices": [shown["vertices"][0] | {"status": "SCHEDULED"}]})
    assert "whether it hangs is open: no TaskManager works for it" in "".join(job.evidence().doubts())


def test_nothing_is_stuck_of_a_job_whose_checkpoints_end_with_it(job: Job) -> None:
    outside = SETTINGS["externalization"] | {"delete_on_cancellation": True}
    job.page(
        f"/jobs/{job.recorded['chained']['job']['jid']}/checkpoints/config", SETTINGS | {"externalization": outside}
    )
    found = job.evidence()
    assert (found.dumped, found.still.stuck, len(found.still.hanging)) == (False, (), 1)
    assert found.still.doubt.startswith("its checkpoints end with it")


def test_a_taskmanager_that_shows_no_threads_leaves_it_open_what_hangs(job: Job) -> None:
    job.page(f"/taskmanagers/{TM}/thread-dump", Answer(503, b"", "text/plain"))
    found = job.evidence()
    assert not found.dumped
    assert "take a thread dump of TaskManager 2 on 127.0.0.1" in found.missing[0]


def test_without_the_proxy_there_is_no_evidence(job: Job) -> None:
    job.server.script.clear()
    job.server.script[""] = Answer(503, b"", "text/plain")
    with pytest.raises(Unavailable, match="list the jobs"):
        job.evidence()


def test_yarn_names_the_containers_of_its_processes(job: Job) -> None:
    app = job.life.yarn.application(job.application)
    master, worker = FlinkEngine().processes(job.life.run.session, app)
    assert (master.name, master.tasks) == ("JobManager", None)
    assert (str(worker), worker.tasks) == ("TaskManager 2 on 127.0.0.1", 1)
    assert worker.container == LoggedContainer(TM, "http://node7:8042", "orders")


@pytest.fixture
def hanging(life: Life) -> Iterator[Job]:
    """A stream of Flink's that `on_stall` restarts; it completed its third checkpoint an hour ago, and hangs since."""
    with serving({}) as server:
        life.use(life.hdfs, yarn=SimYarn(life.clock, address=server.address))
        flink = FlinkLife(life, replace(FLINK_SPEC, heartbeat=POLICY))
        start_from(life.run, "a new stream", fresh=True)
        life.begin()
        flink.complete(3)
        job = Job(life, flink.application.id, server, RECORDED["2.1.1"])
        job.runs("chained")
        life.clock.sleep(3 * LIMIT.total_seconds() + 60)
        yield job


def acted(job: Job) -> Report:
    """Let its task act on the stall of which a watcher woke it."""
    (stall,) = overlong_batches(POLICY, observe(job.life.run))
    return Reconciler(job.life.run, tell=job.told.append).run(Mode.WATCH, stall=stall)


def test_a_job_that_hangs_twice_is_followed_from_its_newest_retained_checkpoint(hanging: Job) -> None:
    first = acted(hanging)
    assert [done.what for done in first.done] == ["examined checkpoint 4 of generation 1"]
    assert f"checkpoint 4: TaskManager 2 on 127.0.0.1, task {CHAIN} (1/1)#0: {HANGS}" in hanging.told
    hanging.life.clock.sleep(LIMIT.total_seconds() / 4)
    report = acted(hanging)
    assert report.generation == 2
    assert "; ".join(done.what for done in report.done).startswith(
        "examined checkpoint 4 of generation 1; generation 1 "
    )
    claim = observe(hanging.life.run).claim
    assert claim is not None
    assert claim.start.resume is not None
    assert claim.start.resume.path.endswith("/chk-3")
    assert hanging.life.yarn.apps[hanging.application].state is ApplicationState.KILLED


@pytest.mark.parametrize("trouble", ["it reads", "its proxy is away", "its checkpoints end with it"])
def test_a_job_that_may_not_hang_is_left_alone_however_often_it_is_examined(hanging: Job, trouble: str) -> None:
    if trouble == "it reads":
        hanging.passes = 1
    elif trouble == "its proxy is away":
        hanging.server.script = {"": Answer(503, b"", "text/plain")}
    else:
        outside = SETTINGS["externalization"] | {"delete_on_cancellation": True}
        settings = SETTINGS | {"externalization": outside}
        hanging.page(f"/jobs/{hanging.recorded['chained']['job']['jid']}/checkpoints/config", settings)
    for _ in range(4):
        assert acted(hanging).generation == 1
        hanging.life.clock.sleep(LIMIT.total_seconds() / 2)
    assert hanging.life.yarn.application(hanging.application).alive
