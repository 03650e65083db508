"""Flink's pages behind the ResourceManager's proxy: what JobManagers of two releases sent, and what is none of theirs.

flink_answers.json was recorded from a job whose TaskManager had been killed, while it was away and after it was
replaced; what nobody reads is cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.flink_pages import FlinkPages, stop_with_savepoint
from airflow_kstream.clients.waiting import at_most
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.flink_conf import LONGEST
from airflow_kstream.model.streams.flink_job import FlinkCheckpointing, FlinkOverview
from tests.simulated.strange_servers import HTML, STRANGE, Answer, StrangeServer, said, serving

WATCHER = Identity("watcher@EXAMPLE.COM", keytab="/no/such/keytab")
APP = "application_1700000000000_0001"
JOB = "00000000000000000000000000000abc"
RECORDED = json.loads(Path(__file__).with_name("flink_answers.json").read_text())


@contextmanager
def pages(server: StrangeServer) -> Iterator[FlinkPages]:
    with closing(FlinkPages(server.address, APP, WATCHER, Tls(), 5.0)) as opened:
        yield opened


@pytest.fixture(params=RECORDED)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def asked(release: str) -> Iterator[FlinkPages]:
    answers = {f"/proxy/{APP}{path}": said(body) for path, body in RECORDED[release].items()}
    with serving(answers) as server, pages(server) as opened:
        yield opened


@contextmanager
def answering(path: str, body: Any) -> Iterator[FlinkPages]:
    with serving({f"/proxy/{APP}{path}": said(body)}) as server, pages(server) as opened:
        yield opened


def test_a_jobmanager_counts_its_taskmanagers_and_jobs(asked: FlinkPages) -> None:
    assert asked.overview() == FlinkOverview(taskmanagers=1, running=1)


def test_a_job_without_taskmanagers_counts_as_running_and_starves(release: str) -> None:
    with answering("/overview", RECORDED[release]["/overview while no TaskManager is there"]) as alone:
        assert (alone.overview().running, alone.overview().starves) == (1, True)


def test_a_jobmanager_without_jobs_starves_nobody(asked: FlinkPages, release: str) -> None:
    with answering("/overview", RECORDED[release]["/overview"] | {"taskmanagers": 0, "jobs-running": 0}) as idle:
        assert not idle.overview().starves
    assert not asked.overview().starves


def test_a_job_has_vertices_whose_records_are_unknown_until_each_task_told(asked: FlinkPages) -> None:
    job = asked.job(JOB)
    (vertex,) = job.vertices
    assert (asked.jobs(), job.id, job.name, job.state) == ((JOB,), JOB, "rows", "RUNNING")
    assert (vertex.status, vertex.parallelism, vertex.read, vertex.written) == ("RUNNING", 1, None, None)


def test_records_count_once_each_task_told(release: str) -> None:
    body = RECORDED[release][f"/jobs/{JOB}"]
    counts = {"read-records": 7, "read-records-complete": True, "write-records": 9, "write-records-complete": True}
    vertices = [body["vertices"][0] | {"metrics": counts}]
    with answering(f"/jobs/{JOB}", body | {"vertices": vertices}) as busy:
        (vertex,) = busy.job(JOB).vertices
    assert (vertex.read, vertex.written) == (7, 9)


def test_checkpoints_tell_the_newest_and_from_which_the_job_went_on(asked: FlinkPages, release: str) -> None:
    seen, recorded = asked.checkpoints(JOB), RECORDED[release][f"/jobs/{JOB}/checkpoints"]
    assert seen.newest is not None
    assert seen.resumed_from is not None
    newest, restored = recorded["latest"]["completed"], recorded["latest"]["restored"]
    assert (seen.completed, seen.failed, seen.restored) == tuple(
        recorded["counts"][name] for name in ("completed", "failed", "restored")
    )
    assert seen.newest.path == f"hdfs://kstream/checkpoints/{JOB}/chk-{seen.newest.number}"
    assert seen.newest.at == datetime.fromtimestamp(newest["trigger_timestamp"] / 1000, UTC)
    assert (seen.newest.number, seen.newest.is_savepoint) == (newest["id"], False)
    assert seen.resumed_from.number == restored["id"] < seen.newest.number
    assert (seen.savepoint, seen.last_failure) == (None, "Trigger checkpoint failure.")


def test_a_checkpoint_that_lies_nowhere_has_no_path(release: str) -> None:
    body = RECORDED[release][f"/jobs/{JOB}/checkpoints"]
    inside = body["latest"]["completed"] | {"external_path": "<checkpoint-not-externally-addressable>"}
    with answering(f"/jobs/{JOB}/checkpoints", body | {"latest": body["latest"] | {"completed": inside}}) as forgetful:
        newest = forgetful.checkpoints(JOB).newest
    assert newest is not None
    assert newest.path is None


SURVIVES = {
    "kept": ({"enabled": True, "delete_on_cancellation": False}, True),
    "deleted": ({"enabled": True, "delete_on_cancellation": True}, False),
    "none": ({"enabled": False, "delete_on_cancellation": False}, False),
}


@pytest.mark.parametrize(("outside", "survives"), SURVIVES.values(), ids=SURVIVES)
def test_checkpoints_survive_only_a_job_that_keeps_them(release: str, outside: Any, survives: bool) -> None:
    path = f"/jobs/{JOB}/checkpoints/config"
    with answering(path, RECORDED[release][path] | {"externalization": outside}) as asked:
        assert asked.checkpointing(JOB) == FlinkCheckpointing(
            timedelta(seconds=2), timedelta(minutes=10), timedelta(0), 0, survives
        )


def test_a_job_that_makes_no_checkpoint_has_no_interval(release: str) -> None:
    path = f"/jobs/{JOB}/checkpoints/config"
    with answering(path, RECORDED[release][path] | {"interval": 2**63 - 1}) as asked:
        assert asked.checkpointing(JOB).interval is None


@pytest.mark.parametrize("timeout", [5 * 10**16, 2**63 - 1], ids=["of two hundred million days", "Long.MAX_VALUE"])
def test_a_checkpoint_that_may_take_for_ever_may_take_ten_years(release: str, timeout: int) -> None:
    path = f"/jobs/{JOB}/checkpoints/config"
    with answering(path, RECORDED[release][path] | {"interval": 2**63 - 2, "timeout": timeout}) as asked:
        pace = asked.checkpointing(JOB)
    assert (pace.interval, pace.timeout) == (LONGEST, LONGEST)


def test_each_failure_of_the_job_has_its_moment(asked: FlinkPages, release: str) -> None:
    (entry,) = RECORDED[release][f"/jobs/{JOB}/exceptions"]["exceptionHistory"]["entries"]
    assert asked.failures(JOB) == (datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),)


def test_a_job_that_never_failed_has_no_failure(release: str) -> None:
    with answering(f"/jobs/{JOB}/exceptions", {"exceptionHistory": {"entries": [], "truncated": False}}) as asked:
        assert asked.failures(JOB) == ()


REFUSALS = {
    "an application that has ended": (Answer(302, headers={"Location": "http://rm/cluster"}), Unavailable, "Flink's"),
    "not allowed": (Answer(403, HTML, "text/html"), Denied, "it answered 403"),
    "no such job": (Answer(404, b'{"errors": ["Job not found"]}'), NotFound, "it answered 404"),
    "a job that is still initialised": (Answer(500, b'{"errors": ["..."]}'), Unavailable, "it answered 500"),
    "another product's": (STRANGE["another product's JSON"], Unavailable, "makes no sense"),
    "a list": (STRANGE["a list"], Unavailable, "makes no sense"),
}


@pytest.mark.parametrize(("answer", "kind", "words"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_none_of_flinks_is_an_error_that_names_what_was_tried(
    answer: Answer, kind: type[KstreamError], words: str
) -> None:
    with serving({"": answer}) as server, pages(server) as asked, pytest.raises(kind) as caught:
        asked.checkpoints(JOB)
    assert words in str(caught.value)
    assert f"look at the checkpoints of job {JOB}" in str(caught.value)


@pytest.mark.parametrize("moment", [10**30, -(10**30), "soon", None])
def test_a_time_that_is_none_makes_no_sense(release: str, moment: object) -> None:
    body = RECORDED[release][f"/jobs/{JOB}/checkpoints"]
    latest = body["latest"] | {"completed": body["latest"]["completed"] | {"trigger_timestamp": moment}}
    with answering(f"/jobs/{JOB}/checkpoints", body | {"latest": latest}) as asked, pytest.raises(Unavailable):
        asked.checkpoints(JOB)


def failed(trace: str) -> Any:
    return {"failure-cause": {"class": "a.B", "stack-trace": trace}}


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (None, ""),
        ({"location": "hdfs://there/savepoints/savepoint-1"}, ""),
        (
            {"failure-cause": {"class": "a.B", "stack-trace": "a.B: x\n\tat a.C\nCaused by: a.D: denied\n\tat a.E"}},
            "a.D: denied",
        ),
        ({"failure-cause": {"class": "a.B", "stack-trace": "a.B: expired\n\tat a.C"}}, "a.B: expired"),
    ],
    ids=["under way", "complete", "failed", "failed without a deeper cause"],
)
def test_why_a_savepoint_failed_is_its_innermost_cause(operation: Any, why: str) -> None:
    status = {"id": "COMPLETED" if operation else "IN_PROGRESS"}
    with answering(f"/jobs/{JOB}/savepoints/{JOB}", {"status": status, "operation": operation}) as asked:
        assert asked.savepoint_failure(JOB, JOB) == why


@pytest.mark.parametrize("head", [False, True], ids=["body", "head"])
def test_a_port_that_never_ends_its_answer_to_a_stop_holds_nobody_up(head: bool) -> None:
    """What listens there is the job of anybody."""
    with serving({"": Answer(500, b"x" * 300, drip=0.02, dripping_head=head)}) as server:
        port = server.address.removeprefix("http://")
        with at_most(0.3), pytest.raises(Unavailable, match="can't be reached") as refused:
            stop_with_savepoint(port, JOB, {})
    assert (refused.value.tried, refused.value.server) == (f"stop job {JOB}", port)


def test_a_port_leads_a_stop_nowhere_else() -> None:
    elsewhere = Answer(307, headers={"Location": "/elsewhere"})
    with serving({"/stop": elsewhere, "/elsewhere": Answer(202)}) as server:
        with pytest.raises(Unavailable, match="it answered 307"):
            stop_with_savepoint(server.address.removeprefix("http://"), JOB, {})
        assert server.requests == [f"POST /jobs/{JOB}/stop"]
