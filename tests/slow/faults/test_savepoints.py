"""What only a Flink job can lose: a TaskManager, its waiting client, the folders in which its states lie."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import NotFound, Unavailable
from airflow_kstream.model.streams.flink_job import job_of
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.supervise.streams.orders.desired import start_from
from tests.live.faults.kept import Clock, Kept, brisk_flink_stream, claims, kept, of_flink
from tests.live.faults.proxies import Moment, Proxies
from tests.live.faults.rows import counted_rows
from tests.live.faults.supervisors import Supervisor
from tests.live.faults.table import Tell
from tests.live.flink_streams import rows_folder
from tests.live.streams import await_that

pytestmark = pytest.mark.faults


def began_with(stream: Kept) -> ResumePoint:
    claim = stream.look().claim
    assert claim is not None
    assert claim.start.resume is not None
    return claim.start.resume


def checkpoints_of(stream: Kept) -> str:
    """Return the folder of the newest generation's checkpoints."""
    claim = stream.look().claim
    assert claim is not None
    return f"{stream.spec.checkpoints[0]}/{job_of(stream.subject.id, claim)}"


@contextmanager
def unwritable(stream: Kept, folder: str) -> Iterator[None]:
    stream.session.hdfs.change_mode(folder, "555")
    try:
        yield
    finally:
        stream.session.hdfs.change_mode(folder, "755")


@of_flink
def test_a_job_that_loses_a_taskmanager_goes_on_with_another(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    leader = {process.pid for process in stream.leader(before)}
    for process in stream.writers(before):
        if process.pid not in leader:
            process.send(signal.SIGKILL)
    clock = Clock()
    stream.await_a_further_commit()
    assert stream.look().generation == before
    stream.conclude(tell, "TaskManager SIGKILLed", "the job went on with another, as Flink does", clock.seconds)


def end_client(supervisor: Supervisor) -> None:
    for client in supervisor.clients():
        client.kill()
    supervisor.succeed()


def end_both(supervisor: Supervisor) -> None:
    clients = supervisor.clients()
    supervisor.kill()
    for client in clients:
        client.kill()


@of_flink
@pytest.mark.parametrize(
    ("who", "end"),
    [("client", end_client), ("supervisor", Supervisor.kill), ("supervisor and client", end_both)],
    ids=["client", "supervisor", "both"],
)
def test_an_application_that_waits_for_a_node_outlives_who_submitted_it(
    stream: Kept, tell: Tell, who: str, end: Callable[[Supervisor], None]
) -> None:
    """Its client waits until it runs, and would withdraw it if it were asked to end."""
    with stream.restart(Moment.ANSWERED, claims) as restart:
        stream.minicluster.pause("nodemanager")
    try:
        await_that(lambda: accepted(stream, restart.after), "YARN has accepted it")
        waiting = stream.application(restart.after).id
        end(restart.supervisor)
        stream.supervisors.begin().succeed()
    finally:
        stream.minicluster.resume("nodemanager")
    clock = Clock()
    assert stream.await_commits(restart.after) == restart.after
    assert stream.application(restart.after).id == waiting
    seen = "the next supervisor left the waiting application alone; it started when there was a node"
    stream.conclude(tell, f"{who} SIGKILLed when YARN has accepted the application", seen, clock.seconds)


def accepted(stream: Kept, generation: int) -> bool:
    states = [app.state for number, app in stream.look().applications if number == generation]
    return states == [ApplicationState.ACCEPTED]


@of_flink
def test_a_job_that_can_write_no_savepoint_is_followed_from_its_newest_checkpoint(stream: Kept, tell: Tell) -> None:
    savepoints = f"{stream.spec.checkpoints[0]}/savepoints"
    stream.session.hdfs.make_folder(savepoints, "755")
    before = stream.ask_for_restart()
    with unwritable(stream, savepoints):
        clock = Clock()
        stream.follow(before + 1)
        recovery = clock.seconds
        begun = began_with(stream)
    assert "/chk-" in begun.path
    assert begun.made_by == before
    seen = f"generation {before} was killed, {before + 1} began with its {begun.path.rpartition('/')[2]}"
    stream.conclude(tell, "savepoints' folder not writable", seen, recovery)


@of_flink
def test_a_job_whose_checkpoints_are_deleted_under_it_makes_others(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    assert stream.session.hdfs.delete(checkpoints_of(stream), recursive=True)
    clock = Clock()
    stream.await_a_further_commit()
    recovery = clock.seconds
    assert stream.look().generation == before
    stream.ask_for_restart()
    stream.follow(before + 1)
    seen = f"its next checkpoint made it again; restarted afterwards with {began_with(stream).path.rpartition('/')[2]}"
    stream.conclude(tell, "checkpoints' folder deleted under a running job", seen, recovery)


@of_flink
def test_a_dead_job_whose_checkpoints_are_gone_is_not_started(stream: Kept, tell: Tell) -> None:
    before, folder = stream.look().generation, checkpoints_of(stream)
    # What was reached is noted by each supervisor.
    stream.supervisors.begin().succeed()
    for process in stream.writers(before):
        process.send(signal.SIGKILL)
    await_that(lambda: not stream.application(before).alive, "YARN learns of it")
    stream.session.hdfs.rename_onto_nothing(folder, f"{folder}-elsewhere")
    refused = stream.supervisors.begin()
    assert refused.end() != 0
    assert stream.look().generation == before
    stream.session.hdfs.rename_onto_nothing(f"{folder}-elsewhere", folder)
    clock = Clock()
    stream.follow(before + 1)
    assert "older than it was" in refused.said, refused.said
    stream.conclude(tell, "checkpoints of a dead job gone", "refused until they were back", clock.seconds)


def test_a_job_without_checkpoints_goes_on_from_its_savepoint(
    faulty: Minicluster, proxies: Proxies, tmp_path: Path, tell: Tell
) -> None:
    """Each of its stops makes one. It commits nothing between them, so its death goes back to the last one."""
    spec = brisk_flink_stream(faulty, build_job(Feature.FLINK, tmp_path / "rows.jar"), "careless", conf={})
    with kept(faulty, proxies, tmp_path, spec) as stream:
        start_from(stream.subject, "a test", fresh=True)
        works(stream, 1)
        before = stream.ask_for_restart()
        works(stream, 2)
        assert "/savepoint-" in began_with(stream).path
        for process in stream.leader(2):
            process.send(signal.SIGKILL)
        await_that(lambda: not stream.application(2).alive, "YARN learns of it")
        clock = Clock()
        works(stream, 3)
        recovery = clock.seconds
        assert began_with(stream).made_by == before
        stream.stop()
        rows = counted_rows(faulty, stream.session.hdfs, rows_folder(spec), tmp_path / "rows")
        tell("flink: JobManager of a job without checkpoints SIGKILLed", "back to its savepoint", recovery, rows)
        assert rows.produced > 200
        assert (rows.lost, rows.doubled) == (0, 0)


def works(stream: Kept, generation: int) -> None:
    """Let a supervisor bring this generation up, and the job write rows for ten seconds."""
    stream.supervisors.begin().succeed()
    app, claim = stream.application(generation), stream.look().claim
    assert claim is not None
    job = str(job_of(stream.subject.id, claim))
    with closing(FlinkPages(stream.session.yarn.active(), app.id, stream.session.identity, Tls(), 60)) as pages:
        await_that(lambda: runs(pages, job), "its job runs")
    Clock().pass_until(10)


def runs(pages: FlinkPages, job: str) -> bool:
    try:
        return pages.job(job).state == "RUNNING" and all(one.status == "RUNNING" for one in pages.job(job).vertices)
    except (NotFound, Unavailable):
        return False
