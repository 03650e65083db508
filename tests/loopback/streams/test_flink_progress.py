"""How far a Flink job has come, and what a look costs: real clients, counted at servers on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.flink_job import flink_job_id
from airflow_kstream.model.streams.generation import Adoption, Claim, Position, StreamId
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.flink_progress import JobMemory, flink_progress
from airflow_kstream.supervise.streams.folder.engine import Newest
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import NOW, Answer, StrangeServer, introduction, page, said, serving
from tests.simulated.yarn import TICKET_SPEC, application, claim_of
from tests.simulated.yarn_logs import ID, NOT_ALLOWED
from tests.simulated.yarn_logs import page as log_page

RECORDED = json.loads((Path(__file__).parents[1] / "clients" / "flink_answers.json").read_text())["1.20.3"]
HANGING = json.loads((Path(__file__).parents[1] / "clients" / "flink_hanging.json").read_text())["1.20.3"]
JOB, PATH = "00000000000000000000000000000abc", "/flink/orders"
FOLDER = f"{PATH}/{JOB}"
STREAM = StreamId("orders", CLUSTER.state_dir)
LOGS = "jobmanager.log"
LOG = f"/ws/v1/node/containers/{ID}/logs/{LOGS}"
MINUTE = timedelta(minutes=1)
CONF = {"execution.checkpointing.interval": "10s"}
EXPIRED = (
    "2026-01-01 00:00:01,000 INFO  o.a.f.YarnResourceManagerDriver [] - Received 1 containers.\n"
    "2026-01-01 00:00:02,000 INFO  o.a.f.ActiveResourceManager [] - Worker container_1_0001_01_000002(n:1) is "
    "terminated. Diagnostics: token (HDFS_DELEGATION_TOKEN token 7) is expired\n"
)


def file(at: datetime, length: int = 1) -> dict[str, Any]:
    return {
        "modificationTime": at.timestamp() * 1000,
        "length": length,
        "owner": "orders",
        "type": "FILE",
    }


def folders(written: Mapping[str, datetime]) -> Answer:
    return page([{"pathSuffix": name, **file(at), "type": "DIRECTORY"} for name, at in written.items()])


class Flink:
    """A job on a NameNode and behind a ResourceManager, looked at by one process with a clock of its own."""

    def __init__(self, namenode: StrangeServer, proxy: StrangeServer) -> None:
        self.namenode, self.proxy, self.seconds = namenode, proxy, 0.0
        hdfs = Hdfs((namenode.address,), CLUSTER.watcher, Tls())
        yarn = ResourceManager((proxy.address,), CLUSTER.watcher, Tls())
        self.session = ClusterSession(CLUSTER, CLUSTER.watcher, hdfs, yarn, KafkaEnds(CLUSTER.watcher))
        self.memory = JobMemory(clock=lambda: self.seconds)
        node = proxy.address.removeprefix("http://")
        logs = f"http://{node}/node/containerlogs/{ID}/orders"
        self.app = replace(application(1, ApplicationState.RUNNING), logs_url=logs)
        self.claim: Claim = replace(claim_of(TICKET_SPEC, 1, NOW), adoption=Adoption(self.app.id, NOW, JOB))
        self.page("/overview", RECORDED["/overview"])
        for path in (f"/jobs/{JOB}", f"/jobs/{JOB}/checkpoints", f"/jobs/{JOB}/checkpoints/config"):
            self.page(path, RECORDED[path])

    def page(self, path: str, body: Any) -> None:
        self.proxy.script[f"/proxy/{self.app.id}{path}"] = said(body)

    def has(self, written: datetime = NOW, **checkpoints: datetime | None) -> None:
        """Let the folder have these checkpoints; None for one without an end, to which its tasks have `written`."""
        names = {name.replace("_", "-"): at or written for name, at in checkpoints.items()}
        self.namenode.script[f"{FOLDER}?op=LISTSTATUS_BATCH"] = folders({"shared": NOW, "taskowned": NOW, **names})
        for name, at in checkpoints.items():
            path = f"{FOLDER}/{name.replace('_', '-')}/_metadata?op=GETFILESTATUS"
            self.namenode.script[path] = said({"FileStatus": file(at)}) if at else missing(path)

    def look(self, claim: Claim | None = None) -> Checkpoint:
        self.namenode.requests.clear()
        self.proxy.requests.clear()
        newest = Newest(claim or self.claim, self.app)
        return flink_progress(self.session, PATH, newest, STREAM, CONF, self.memory)

    @property
    def cost(self) -> tuple[int, int]:
        """The WebHDFS calls of the last look, and its GETs of the JobManager."""
        pages = [request for request in self.proxy.requests if "/proxy/" in request]
        return len(self.namenode.requests), len(pages)

    def after(self, minutes: float) -> Checkpoint:
        self.seconds += minutes * 60
        return self.look()


def missing(path: str) -> Answer:
    error = {"exception": "FileNotFoundException", "javaClassName": "java.io.FileNotFoundException", "message": path}
    return said({"RemoteException": error}, 404)


@contextmanager
def up() -> Iterator[Flink]:
    with serving({}) as namenode, serving({"/ws/v1/cluster/info": introduction()}) as proxy:
        flink = Flink(namenode, proxy)
        try:
            yield flink
        finally:
            flink.session.hdfs.close()
            flink.session.yarn.close()


@pytest.fixture
def flink() -> Iterator[Flink]:
    with up() as opened:
        yield opened


def clock(point: Checkpoint) -> Clockwork:
    assert point.clock is not None
    return point.clock


def test_the_highest_complete_checkpoint_is_the_position_and_its_owner_the_writer(flink: Flink) -> None:
    flink.has(chk_9=NOW - MINUTE, chk_10=NOW - MINUTE / 4, chk_11=None)
    point = flink.look()
    assert point.position == Position(None, 10, 10)
    assert (point.last_commit, set(point.writers)) == (NOW - MINUTE / 4, {"orders"})


def test_a_fresh_checkpoint_costs_two_calls_and_asks_no_jobmanager(flink: Flink) -> None:
    flink.has(chk_9=NOW - MINUTE, chk_10=NOW - MINUTE / 4)
    point = flink.look()
    assert flink.cost == (2, 0)
    assert clock(point).workers is None
    flink.look()
    assert flink.cost == (1, 0), "a complete one stays complete"


def test_a_checkpoint_under_way_costs_one_call_more(flink: Flink) -> None:
    flink.has(chk_10=NOW - MINUTE / 4, chk_11=None)
    flink.look()
    assert flink.cost == (3, 0)
    flink.look()
    assert flink.cost == (2, 0)


def test_what_failed_checkpoints_left_is_asked_about_once(flink: Flink) -> None:
    """A job leaves thousands, or somebody makes them: the other streams of the cluster wait for each look."""
    left, then = dict.fromkeys(f"chk_{number}" for number in range(11, 61)), NOW - 61 * MINUTE
    flink.has(then, chk_10=NOW - MINUTE / 4, **left)
    assert flink.look().position.commit == 10
    assert flink.cost == (2 + 50, 0)
    assert flink.look().position.commit == 10
    assert flink.cost == (1, 0)
    flink.has(then, chk_10=NOW - MINUTE / 4, **left, chk_61=NOW, chk_62=None)
    assert (flink.look().position.commit, flink.cost) == (61, (3, 0))


def test_a_checkpoint_that_completes_after_hours_counts_at_once(flink: Flink) -> None:
    left, then = dict.fromkeys(f"chk_{number}" for number in range(12, 24)), NOW - 180 * MINUTE
    flink.has(then, chk_10=NOW - MINUTE / 4, chk_11=None, **left)
    assert flink.look().position.commit == 10
    flink.has(then, chk_10=NOW - MINUTE / 4, chk_11=NOW, **left)
    assert (flink.look().position.commit, flink.cost) == (11, (2, 0))


def test_a_folder_of_the_last_minute_is_asked_about_again(flink: Flink) -> None:
    """A NameNode that takes over with a clock that is behind leaves its time as it is when a file comes into it."""
    flink.has(NOW - MINUTE / 2, chk_10=NOW - 2 * MINUTE, chk_11=None)
    assert flink.look().position.commit == 10
    flink.has(NOW - MINUTE / 2, chk_10=NOW - 2 * MINUTE, chk_11=NOW - MINUTE / 2)
    assert flink.look().position.commit == 11


def test_however_many_checkpoints_are_under_way_each_counts_once_it_is_complete(flink: Flink) -> None:
    flink.has(NOW, chk_10=NOW, **dict.fromkeys(f"chk_{number}" for number in range(11, 61)))
    assert flink.look().position.commit == 10
    flink.has(NOW, chk_10=NOW, chk_11=NOW, **dict.fromkeys(f"chk_{number}" for number in range(12, 61)))
    assert flink.look().position.commit == 11


def test_an_empty_metadata_is_none_until_it_is_closed(flink: Flink) -> None:
    """Its folder's time stays what it was when the file came."""
    flink.has(chk_10=NOW - 70 * MINUTE, chk_11=NOW - 60 * MINUTE)
    path = f"{FOLDER}/chk-11/_metadata?op=GETFILESTATUS"
    flink.namenode.script[path] = said({"FileStatus": file(NOW, length=0)})
    assert flink.look().position.commit == 10
    flink.namenode.script[path] = said({"FileStatus": file(NOW)})
    assert flink.look().position.commit == 11


def test_an_older_checkpoint_asks_two_pages_a_look_and_each_once_a_minute(flink: Flink) -> None:
    flink.has(chk_10=NOW - 60 * MINUTE)
    point = flink.look()
    assert flink.cost == (2, 3), "what the first look asks more is how the job makes checkpoints"
    assert (clock(point).workers, clock(point).limit) == (1, 20 * MINUTE)
    costs = [flink.cost[1] for _ in range(20) if flink.after(0.25)]
    assert max(costs) == 2
    assert sum(costs) <= 3 * 5 + 1


def test_without_a_jobmanager_hdfs_alone_decides(flink: Flink) -> None:
    flink.has(chk_10=NOW - 60 * MINUTE)
    flink.proxy.script = {"/ws/v1/cluster/info": introduction()}
    point = flink.look()
    assert (point.position.commit, flink.cost) == (10, (2, 1))
    assert clock(point) == Clockwork("checkpoint", "TaskManager", 20 * MINUTE, timedelta(seconds=10))
    assert [flink.cost[1] for _ in range(3) if flink.after(0.25)] == [0, 0, 0], "and it is not asked again at once"


def test_no_resourcemanager_is_no_jobmanager(flink: Flink) -> None:
    flink.has(chk_10=NOW - 60 * MINUTE)
    flink.proxy.script = {}
    assert flink.look().position.commit == 10


def test_a_job_that_initialises_shows_no_checkpoints_and_counts_its_workers(flink: Flink) -> None:
    flink.has()
    flink.proxy.script[f"/proxy/{flink.app.id}/jobs/{JOB}/checkpoints"] = Answer(500, b"{}")
    point = flink.look()
    assert (point.empty, clock(point).workers, clock(point).trouble) == (True, 1, "")


def test_restarts_inside_count_since_the_newest_checkpoint(flink: Flink) -> None:
    path = f"/jobs/{JOB}/checkpoints"

    def restored(times: int) -> None:
        flink.page(path, RECORDED[path] | {"counts": RECORDED[path]["counts"] | {"restored": times}})

    flink.has(chk_10=NOW - 5 * MINUTE)
    restored(7)
    assert clock(flink.look()).restarts == 0
    restored(10)
    assert clock(flink.after(2)).restarts == 3
    flink.has(chk_10=NOW - 5 * MINUTE, chk_11=NOW - 3 * MINUTE)
    assert clock(flink.after(2)).restarts == 0


def loops(flink: Flink, restored: int, *failed: timedelta) -> None:
    """Let the job have failed so long after its newest checkpoint was triggered, and in all have been restored so
    often."""
    path = f"/jobs/{JOB}/checkpoints"
    flink.page(path, RECORDED[path] | {"counts": RECORDED[path]["counts"] | {"restored": restored}})
    triggered, path = RECORDED[path]["latest"]["completed"]["trigger_timestamp"], f"/jobs/{JOB}/exceptions"
    (entry,) = RECORDED[path]["exceptionHistory"]["entries"]
    entries = [entry | {"timestamp": triggered + each / timedelta(milliseconds=1)} for each in failed]
    flink.page(path, {"exceptionHistory": {"entries": entries, "truncated": False}})


def test_who_begins_to_look_finds_a_loop_of_restarts_inside(flink: Flink) -> None:
    """A triggerer that starts again, a task, a person at a terminal: none has watched it until now."""
    flink.has(chk_15=NOW - 5 * MINUTE)
    loops(flink, 9, -2 * MINUTE, -MINUTE, MINUTE, 2 * MINUTE, 3 * MINUTE, 4 * MINUTE)
    assert clock(flink.look()).restarts == 4
    assert flink.cost[1] == 4
    loops(flink, 11)
    assert clock(flink.after(2)).restarts == 6
    flink.has(chk_15=NOW - 5 * MINUTE, chk_16=NOW - 3 * MINUTE)
    assert clock(flink.after(2)).restarts == 0


def test_a_checkpoint_that_the_jobmanager_completes_meanwhile_ends_the_loop(flink: Flink) -> None:
    flink.has(chk_14=NOW - 5 * MINUTE)
    loops(flink, 9, MINUTE, 2 * MINUTE, 3 * MINUTE)
    assert clock(flink.look()).restarts == 0


def test_without_the_failures_restarts_inside_count_from_the_first_look(flink: Flink) -> None:
    flink.has(chk_15=NOW - 5 * MINUTE)
    loops(flink, 9)
    flink.proxy.script[f"/proxy/{flink.app.id}/jobs/{JOB}/exceptions"] = Answer(500, b"{}")
    assert clock(flink.look()).restarts == 0
    loops(flink, 12)
    assert clock(flink.after(2)).restarts == 3


def test_of_a_job_that_restarted_less_than_a_loop_no_failures_are_asked(flink: Flink) -> None:
    flink.has(chk_15=NOW - 5 * MINUTE)
    loops(flink, 2, MINUTE, 2 * MINUTE)
    assert (clock(flink.look()).restarts, flink.cost[1]) == (0, 3)


def chained(flink: Flink, passed: int, spent: int) -> None:
    """Let the JobManager show a job that is chained into one vertex, which has passed on so many rows."""
    job, (vertex,) = HANGING["chained"]["job"], HANGING["chained"]["job"]["vertices"]
    metrics, base = HANGING["chained"]["metrics"][vertex["id"]], f"/jobs/{JOB}/vertices/{vertex['id']}/subtasks/metrics"
    times = {"metrics": vertex["metrics"] | {"accumulated-busy-time": float(spent)}}
    flink.page(f"/jobs/{JOB}", job | {"vertices": [vertex | times]})
    flink.page(base, metrics["names"])
    flink.page(f"{base}?agg", [{"id": "Source__counted.numRecordsOut", "sum": float(passed)}])


@pytest.mark.parametrize(
    ("second", "moves"),
    [((709, 2000), True), ((708, 2000), False), ((708, 1000), None), ((709, 1000), True)],
    ids=["it reads", "it hangs", "nothing was heard of it since", "it reads as before"],
)
def test_a_job_in_one_vertex_tells_by_the_counts_of_its_operators(
    flink: Flink, second: tuple[int, int], moves: bool | None
) -> None:
    flink.has(chk_10=NOW - 60 * MINUTE)
    chained(flink, 708, 1000)
    assert {clock(flink.after(0.5)).moves for _ in range(4)} == {None}, "one reading tells nothing"
    chained(flink, *second)
    assert {clock(flink.after(0.5)).moves for _ in range(4)} - {None} == {moves} - {None}


def test_a_late_job_in_one_vertex_costs_two_pages_a_minute_for_what_it_reads(flink: Flink) -> None:
    flink.has(chk_10=NOW - 60 * MINUTE)
    chained(flink, 708, 1000)
    pages: list[str] = []
    for _ in range(20):
        flink.after(0.25)
        pages += [
            request for request in flink.proxy.requests if f"/jobs/{JOB} " in f"{request} " or "metrics" in request
        ]
    assert len(pages) <= 1 + 2 * 5


@pytest.mark.parametrize(
    "odd", [{"status": "INITIALIZING"}, {"status": "SCHEDULED"}, {"metrics": {"read-records-complete": False}}], ids=str
)
def test_what_a_job_reads_is_unknown_while_a_task_does_not_run_or_report(flink: Flink, odd: dict[str, Any]) -> None:
    flink.has(chk_10=NOW - 60 * MINUTE)
    for spent in range(6):
        chained(flink, 708, spent)
        (vertex,) = HANGING["chained"]["job"]["vertices"]
        changed = odd | {"metrics": vertex["metrics"] | {"accumulated-busy-time": spent} | odd.get("metrics", {})}
        flink.page(f"/jobs/{JOB}", HANGING["chained"]["job"] | {"vertices": [vertex | changed]})
        assert clock(flink.after(1)).moves is None


def test_restarts_inside_count_on_while_the_jobmanager_does_not_answer(flink: Flink) -> None:
    """Else the event for them would end and begin again with each look."""
    flink.has(chk_10=NOW - 5 * MINUTE)
    seen = RECORDED[f"/jobs/{JOB}/checkpoints"]
    for restored in (1, 4):
        flink.page(f"/jobs/{JOB}/checkpoints", seen | {"counts": seen["counts"] | {"restored": restored}})
        flink.after(2)
    assert clock(flink.after(2)).restarts == 3
    flink.proxy.script = {"/ws/v1/cluster/info": introduction()}
    assert [clock(flink.after(2)).restarts for _ in range(3)] == [3, 3, 3]


def test_a_job_without_taskmanagers_brings_the_words_of_yarn(flink: Flink) -> None:
    flink.has(chk_10=NOW - 5 * MINUTE)
    flink.page("/overview", RECORDED["/overview while no TaskManager is there"])
    flink.proxy.script[LOG] = log_page(LOGS, EXPIRED.encode())
    point = clock(flink.look())
    assert point.workers == 0
    assert "is expired" in point.refusal
    seen = [clock(flink.after(0.25)).refusal for _ in range(8)]
    assert set(seen) == {point.refusal}
    flink.page("/overview", RECORDED["/overview"])
    assert clock(flink.after(2)).refusal == ""


def test_most_jobs_get_their_taskmanager_before_the_log_is_read(flink: Flink) -> None:
    flink.has(chk_10=NOW - 5 * MINUTE)
    flink.look()
    flink.page("/overview", RECORDED["/overview while no TaskManager is there"])
    flink.proxy.script[LOG] = log_page(LOGS, EXPIRED.encode())
    assert clock(flink.after(1.1)).refusal == ""
    assert [request for request in flink.proxy.requests if LOG in request] == []
    assert "is expired" in clock(flink.after(1.1)).refusal


def test_a_log_that_can_not_be_read_is_no_error(flink: Flink) -> None:
    flink.has(chk_10=NOW - 5 * MINUTE)
    flink.page("/overview", RECORDED["/overview while no TaskManager is there"])
    point = clock(flink.look())
    assert (point.workers, point.refusal, point.waits) == (0, "", False)


def test_a_log_that_may_not_be_read_is_named_as_the_place_of_the_reason(flink: Flink) -> None:
    flink.has(chk_10=NOW - 5 * MINUTE)
    flink.page("/overview", RECORDED["/overview while no TaskManager is there"])
    flink.proxy.script[LOG] = NOT_ALLOWED
    seen = clock(flink.look())
    assert "can't be read: " in seen.trouble
    assert "the application's own view ACL doesn't name the user who logs in" in seen.trouble
    assert seen.refusal == "", "no word of YARN's"


def test_a_generation_of_ours_has_the_id_that_was_known_before_it_ran(flink: Flink) -> None:
    claim = claim_of(TICKET_SPEC, 1, NOW - MINUTE, {PATH: Position(None, 41, 41)})
    folder = f"{PATH}/{flink_job_id(STREAM, 1, claim.nonce)}"
    flink.namenode.script[f"{folder}?op=LISTSTATUS_BATCH"] = missing(folder)
    point = flink.look(claim)
    assert point.position == Position(None, 41, 41), "until its first checkpoint it stands where it was claimed"
    assert point.last_commit == claim.claimed_at


def test_an_adopted_job_whose_folder_is_gone_has_lost_its_position(flink: Flink) -> None:
    flink.namenode.script[f"{FOLDER}?op=LISTSTATUS_BATCH"] = missing(FOLDER)
    assert flink.look(replace(flink.claim, positions={PATH: Position(None, 41, 41)})).empty


def test_a_job_whose_id_nobody_knows_shows_nothing(flink: Flink) -> None:
    unknown = replace(flink.claim, adoption=Adoption(flink.app.id, NOW))
    assert flink.look(unknown) == Checkpoint(PATH, None)
    assert flink.cost == (0, 0)
