"""Spark's pages behind the ResourceManager's proxy: what a driver sends, and what comes where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from airflow_kstream.clients.spark_pages import DRIVER, SparkPages
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import Process, Thread
from airflow_kstream.supervise.tokens.push import _driver
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.strange_servers import HTML, STRANGE, Answer, StrangeServer, said, serving

WATCHER = Identity("watcher@EXAMPLE.COM", keytab="/no/such/keytab")
APP = "application_1700000000000_0001"
BASE = f"/proxy/{APP}/api/v1/applications/{APP}"
LINK = "http://node7:8042/node/containerlogs/container_1700000000000_0001_01_000002/streamer/stdout?start=-4096"
EXECUTORS = said(
    [
        {"id": "driver", "hostPort": "node1:41121", "activeTasks": 0, "executorLogs": {}},
        {"id": "1", "hostPort": "node7:35001", "activeTasks": 2, "executorLogs": {"stdout": LINK}},
    ]
)
NONE = {"failedTasks": 0}
THREADS = said(
    [
        {
            "threadName": "main",
            "threadState": "WAITING",
            "stackTrace": {"elems": ["java.base@17/java.lang.Object.wait(Native Method)\n\t- waiting on x@1\n"]},
        }
    ]
)


@contextmanager
def pages(server: StrangeServer, within: float = 5.0) -> Iterator[SparkPages]:
    with closing(SparkPages(server.address, APP, WATCHER, Tls(), within)) as opened:
        yield opened


def test_the_driver_and_its_executors_are_listed_with_their_containers() -> None:
    with serving({f"{BASE}/executors": EXECUTORS}) as server, pages(server) as asked:
        driver, executor = asked.processes()
    assert driver == Process(DRIVER, "node1")
    assert (executor.name, executor.host, executor.tasks) == ("executor 1", "node7", 2)
    assert executor.container is not None
    assert executor.container.id == "container_1700000000000_0001_01_000002"


def test_a_process_tells_what_its_threads_do() -> None:
    with serving({f"{BASE}/executors/driver/threads": THREADS}) as server, pages(server) as asked:
        dump = asked.threads(Process(DRIVER, "node1"))
    assert dump.threads == (Thread("main", "WAITING", ("java.lang.Object.wait(Native Method)",)),)
    assert list(dump.lines()) == [
        "# driver on node1",
        '"main" WAITING',
        "\tat java.lang.Object.wait(Native Method)",
        "",
    ]


def counted(records: int) -> Answer:
    return said([{"stageId": 3, "attemptId": 0, "numCompleteTasks": 1, "inputRecords": records, "outputBytes": None}])


def test_progress_is_what_spark_counts_and_differs_by_one_record() -> None:
    ended = said([{"id": "1", "completedTasks": 7, "failedTasks": 1}, {"id": "driver", "completedTasks": 0} | NONE])
    texts = []
    for records in (100, 100, 101):
        with (
            serving({f"{BASE}/executors": ended, f"{BASE}/stages?status=active": counted(records)}) as server,
            pages(server) as asked,
        ):
            texts.append(asked.progress())
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].splitlines()[:2] == ["executor 1: 8 tasks ended", "executor driver: 0 tasks ended"]
    assert "stage 3.0: numCompleteTasks=1 numFailedTasks=0 inputRecords=100" in texts[0]


ORDERS, BILLS = "6a1c4ba8-5a5a-4a70-8b0e-1c5f8a3d2e11", "0b7d93e4-27a1-4f0c-9a55-77c3a1b6f0d2"


def job(number: int, query: str, *stages: int, ended: int = 0) -> dict[str, Any]:
    description = {"description": f"name\nid = {query}\nrunId = {NONE_OF_THEIRS}\nbatch = 7"} if query else {}
    return {"jobId": number, "numCompletedTasks": ended, "numFailedTasks": 0, "stageIds": list(stages), **description}


NONE_OF_THEIRS = "ffffffff-27a1-4f0c-9a55-77c3a1b6f0d2"


def test_progress_of_one_query_is_not_moved_by_another() -> None:
    texts = []
    for records, ended in ((100, 1), (100, 2), (101, 3)):
        jobs = [job(5, ORDERS, 3, 4), job(6, BILLS, 8, 9, ended=ended), job(7, "", 11)]
        active = [
            {"stageId": 9, "attemptId": 0, "inputRecords": 1000 * ended},
            {"stageId": 3, "attemptId": 0, "inputRecords": records},
            {"stageId": 11, "attemptId": 1, "inputRecords": 5},
        ]
        answers = {f"{BASE}/jobs?status=running": said(jobs), f"{BASE}/stages?status=active": said(active)}
        with serving(answers) as server, pages(server) as asked:
            text, stages = asked.progress_of(ORDERS)
        assert stages == {3, 11}
        texts.append(text)
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].splitlines()[:2] == ["job 5: 0 tasks ended", "job 7: 0 tasks ended"]


REFUSALS = {
    "no web UI": (Answer(302, headers={"Location": "http://rm:8088/cluster/app/x"}), Unavailable, "spark.ui.enabled"),
    "a page": (Answer(200, HTML, "text/html"), Unavailable, "nothing of Spark's"),
    "not allowed": (Answer(403, HTML, "text/html"), Denied, "it answered 403"),
    "no such executor": (Answer(404, HTML, "text/html"), NotFound, "it answered 404"),
    "no dumps": (Answer(503, b"", "text/plain"), Unavailable, "it answered 503"),
    "truncated": (STRANGE["truncated JSON"], Unavailable, "makes no sense"),
    "another product's": (STRANGE["another product's JSON"], Unavailable, "makes no sense"),
    "deep": (STRANGE["JSON nested 100,000 deep"], Unavailable, "makes no sense"),
    "endless": (Answer(200, b"[" + b" " * (17 << 20)), Unavailable, "makes no sense"),
}


@pytest.mark.parametrize(("answer", "kind", "words"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_none_of_sparks_is_an_error_that_names_what_was_tried(
    answer: Answer, kind: type[KstreamError], words: str
) -> None:
    with serving({"": answer}) as server, pages(server) as asked, pytest.raises(kind) as caught:
        asked.threads(Process("executor 1", "node7"))
    assert words in str(caught.value)
    assert "take a thread dump of executor 1 on node7" in str(caught.value)
    assert server.address in str(caught.value)
    assert "watcher@EXAMPLE.COM" in str(caught.value)


def test_a_driver_that_sends_a_byte_a_second_is_left_in_time() -> None:
    slow = replace(THREADS, drip=1.0)
    with (
        serving({"": slow}) as server,
        pages(server, within=1.0) as asked,
        pytest.raises(Unavailable, match=r"not complete after (0|1\.0)"),
    ):
        asked.threads(Process(DRIVER, "node1"))


def test_an_unknown_link_to_logs_names_no_container() -> None:
    body = json.loads(EXECUTORS.body)
    body[1]["executorLogs"] = {"stdout": "https://logs.example.com/?q=1"}
    with serving({f"{BASE}/executors": said(body)}) as server, pages(server) as asked:
        assert asked.processes()[1].container is None


@pytest.mark.parametrize("hadoop", [{"hadoopProperties": [["ipc.client.connection.maxidletime", "10000"]]}, {}])
def test_a_driver_shows_what_it_runs_with(hadoop: dict[str, Any]) -> None:
    jars = [["/spark/jars/httpclient-4.5.14.jar", "System Classpath"], ["/conf/", "System Classpath"]]
    page = said({"sparkProperties": [["spark.app.name", "orders"]], "classpathEntries": jars, **hadoop})
    with serving({f"{BASE}/environment": page}) as server, pages(server) as asked:
        environment = asked.environment()
    assert environment.properties == {"spark.app.name": "orders"}
    assert environment.jars[0] == "httpclient-4.5.14.jar"
    assert environment.hadoop == ({"ipc.client.connection.maxidletime": "10000"} if hadoop else None)


def test_no_token_is_pushed_by_hand_to_a_job_of_another_engine() -> None:
    """Its pages are there, and none of them is Spark's."""
    with serving({}) as server:
        session = session_of(SimHdfs(SimClock()), SimYarn(SimClock(), address=server.address))
        with pytest.raises(Conflict, match="it has no web UI of Spark's"):
            _driver(session, APP)
