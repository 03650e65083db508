"""Applications that die, are killed, wait or come late."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.desired import set_desired
from tests.cluster.streams import await_that
from tests.cluster.test_minicluster import session_as
from tests.faults.kept import Clock, Kept, claims
from tests.faults.proxies import Moment
from tests.faults.table import Tell

pytestmark = pytest.mark.faults
_KILL = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"


def test_a_stream_whose_driver_was_killed_is_followed(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    for process in stream.driver(before):
        process.send(signal.SIGKILL)
    clock = Clock()
    await_that(lambda: not stream.application(before).alive, "YARN learns of it")
    stream.supervisors.begin().succeed()
    assert stream.await_commits(before + 1) == before + 1
    stream.conclude(tell, "ApplicationMaster SIGKILLed", f"generation {before + 1} follows", clock.seconds)


def test_a_stream_that_a_person_killed_is_reported_and_left_alone(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    app = stream.application(before)
    killed = stream.minicluster.hadoop_main(_KILL, "application", "-kill", app.id, as_="hdfs")
    assert killed.returncode == 0, killed.stderr
    await_that(lambda: not stream.application(before).alive, "YARN has ended it")
    report = stream.reconciler.run(Mode.WATCH)
    assert "was killed by hdfs" in report.why
    assert stream.look().generation == before
    clock = Clock()
    set_desired(stream.subject, DesiredState.RUNNING, "a person wants it back")
    stream.supervisors.begin().succeed()
    assert stream.await_commits(before + 1) == before + 1
    seen = "reported as killed by hdfs, left alone until a person started it"
    stream.conclude(tell, "application killed by a person", seen, clock.seconds)


def test_an_application_that_comes_after_it_was_given_up_writes_nothing(stream: Kept, tell: Tell) -> None:
    """YARN starts it only when its fence has been taken: its driver can't be localised, and the next one is."""
    before = stream.look().generation
    late = waiting_application(stream, before)
    claim = stream.look().claim
    assert claim is not None
    stream.subject.folder.take_fence(claim.fence)
    stream.minicluster.resume("nodemanager")
    clock = Clock()
    await_that(lambda: not stream.application(before + 1).alive, "the late application ends")
    ended = stream.session.yarn.application(late.id)
    assert not ended.succeeded
    assert claim.fence in ended.diagnostics
    stream.supervisors.begin().succeed()
    assert stream.await_commits(before + 2) == before + 2
    seen = f"generation {before + 1} could not start without its fence, {before + 2} follows"
    stream.conclude(tell, "late application", seen, clock.seconds)


def test_a_submission_whose_staging_folder_is_removed_is_followed(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    app = waiting_application(stream, before)
    assert stream.session.hdfs.delete(f"/user/{app.user}/.sparkStaging/{app.id}", recursive=True)
    stream.minicluster.resume("nodemanager")
    clock = Clock()
    await_that(lambda: not stream.application(before + 1).alive, "YARN can't start it")
    stream.supervisors.begin().succeed()
    assert stream.await_commits(before + 2) == before + 2
    seen = f"YARN could not localise generation {before + 1}, {before + 2} follows"
    stream.conclude(tell, "staging folder removed before the driver starts", seen, clock.seconds)


def waiting_application(stream: Kept, before: int) -> Application:
    """Restart it while the NodeManager is paused; return the next generation's application, which YARN can't start."""
    stream.ask_for_restart()
    with stream.proxies.gate(Moment.ANSWERED, partial(claims, before + 1)) as gate:
        supervisor = stream.supervisors.begin()
        gate.await_request()
        stream.minicluster.pause("nodemanager")
    try:
        supervisor.succeed()
        app = stream.application(before + 1)
        assert app.state is ApplicationState.ACCEPTED
    except BaseException:
        stream.minicluster.resume("nodemanager")
        raise
    return app


def test_a_stream_whose_queue_is_full_waits_and_is_left_alone(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    stream.ask_for_restart()
    with stream.proxies.gate(Moment.ANSWERED, partial(claims, before + 1)) as gate:
        supervisor = stream.supervisors.begin()
        gate.await_request()
        with full_queue(stream.minicluster, stream):
            gate.open()
            supervisor.succeed()
            stream.supervisors.begin().succeed()
            waiting = stream.application(before + 1)
            assert waiting.state is ApplicationState.ACCEPTED
    clock = Clock()
    assert stream.await_commits(before + 1) == before + 1
    assert stream.application(before + 1).id == waiting.id
    seen = "two supervisors left the waiting application alone; it started when there was room"
    stream.conclude(tell, "queue full", seen, clock.seconds)


@contextmanager
def full_queue(minicluster: Minicluster, stream: Kept) -> Iterator[None]:
    """Take all memory of the queue with one container that sleeps."""
    with session_as(minicluster, "streamer") as session:
        apps = f"{stream.session.yarn.active()}/ws/v1/cluster/apps"
        name = session.post(f"{apps}/new-application", timeout=60).json()["application-id"]
        submission = {
            "application-id": name,
            "application-name": "all memory",
            "am-container-spec": {"commands": {"command": "sleep 299"}},
            "resource": {"memory": 14_336, "vCores": 1},
            "max-app-attempts": 1,
        }
        assert session.post(apps, json=submission, timeout=60).status_code == 202
    await_that(lambda: free_memory(minicluster) == 0, "the queue is full")
    try:
        yield
    finally:
        stream.session.yarn.kill(name, "the test is over", timedelta(seconds=60))


def free_memory(minicluster: Minicluster) -> int:
    """Return the megabytes that the NodeManager has left."""
    answer = next(daemon.answer for daemon in minicluster.status() if daemon.name == "nodemanager")
    return int(answer.removeprefix("healthy, ").removesuffix(" MB free"))
