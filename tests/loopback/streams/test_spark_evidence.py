"""Evidence of a stall, as Spark's engine takes it from a driver's pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from airflow_kstream.model.errors import Denied
from airflow_kstream.supervise.streams.pulse.evidence import Evidence, take_evidence
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.life import Life
from tests.simulated.servers import SimYarn
from tests.simulated.strange_servers import HTML, Answer, StrangeServer, said, serving

NONE = {"completedTasks": 0, "failedTasks": 0}
EXECUTORS = [
    {"id": "driver", "hostPort": "node1:1", "activeTasks": 0} | NONE,
    {"id": "2", "hostPort": "node7:1", "activeTasks": 1} | NONE,
    {"id": "10", "hostPort": "node8:1", "activeTasks": 0} | NONE,
]
MINE, OTHER = "6a1c4ba8-5a5a-4a70-8b0e-1c5f8a3d2e11", "0b7d93e4-27a1-4f0c-9a55-77c3a1b6f0d2"
PARKED = "java.lang.Object.wait(Native Method)"
READS = "java.net.SocketInputStream.socketRead0(Native Method)"


def threads(*named: tuple[str, str]) -> Answer:
    dumps = [{"threadName": name, "threadState": "WAITING", "stackTrace": {"elems": [at]}} for name, at in named]
    return said(dumps)


def query(query_id: str) -> tuple[str, str]:
    return f"stream execution thread for q [id = {query_id}, runId = 3]", PARKED


def task(stage: int) -> tuple[str, str]:
    return f"Executor task launch worker for task 0.0 in stage {stage}.0 (TID 1)", READS


@dataclass
class Driver:
    """A stream of Spark's that runs, and its driver's pages."""

    life: Life
    application: str
    server: StrangeServer
    told: list[str] = field(default_factory=list)

    def evidence(self, query: str = "") -> Evidence:
        run = replace(self.life.run, engine=SparkEngine())
        return take_evidence(run, self.life.yarn.application(self.application), 1, self.told.append, query)

    def shows(self, pages: Mapping[str, Any]) -> None:
        base = f"/proxy/{self.application}/api/v1/applications/{self.application}"
        self.server.script |= {f"{base}{path}": page for path, page in pages.items()}


@pytest.fixture
def driver(life: Life) -> Iterator[Driver]:
    with serving({}) as server:
        yarn = SimYarn(life.clock, address=server.address)
        life.use(life.hdfs, yarn=yarn)
        life.begin()
        driver = Driver(life, list(yarn.apps)[-1], server)
        driver.shows(pages())
        yield driver


def pages() -> dict[str, Answer]:
    return {
        "/executors": said(EXECUTORS),
        "/executors/driver/threads": threads(query(MINE)),
        "/executors/2/threads": threads(task(3)),
        "/stages?status=active": said([{"stageId": 3, "attemptId": 0}]),
    }


def test_a_task_that_stands_still_is_what_is_stuck(driver: Driver) -> None:
    found = driver.evidence()
    words = "executor 2 on node7, task 0.0 in stage 3.0 (TID 1): reads from a socket"
    assert [str(each) for each in found.still.stuck] == [words]
    assert (found.dumped, found.moves, found.missing) == (True, False, ())
    assert "stage 3.0: numCompleteTasks=0" in found.progress
    assert driver.told[-1] == f"took thread dump 3 of 3 of {driver.application}: 2 processes"


def test_work_of_another_query_is_shown_and_is_not_what_is_stuck(driver: Driver) -> None:
    jobs = [{"jobId": 5, "numCompletedTasks": 0, "numFailedTasks": 0, "stageIds": [3], "description": f"id = {OTHER}"}]
    driver.shows({"/executors/driver/threads": threads(query(MINE), query(OTHER)), "/jobs?status=running": said(jobs)})
    found = driver.evidence(MINE)
    assert [each.what for each in found.still.hanging] == ["task 0.0 in stage 3.0 (TID 1)"]
    assert [each.what for each in found.still.stuck] == [f"the query q [id = {MINE}, runId = 3]"]
    assert found.progress == ""


def test_an_executor_that_shows_no_threads_leaves_it_open_what_hangs(driver: Driver) -> None:
    driver.shows({"/executors/2/threads": Answer(503, b"", "text/plain")})
    found = driver.evidence()
    assert not found.dumped
    assert len(found.missing) == 1
    assert "take a thread dump of executor 2 on node7" in found.missing[0]


def test_pages_that_refuse_are_the_answer(driver: Driver) -> None:
    driver.shows({"/executors": Answer(403, HTML, "text/html")})
    with pytest.raises(Denied, match="list the executors"):
        driver.evidence()
