"""Applications that die, are killed, wait or come late."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.faults.kept import Clock, Kept, claims, of_each_engine
from tests.live.faults.proxies import Moment
from tests.live.faults.table import Tell
from tests.live.streams import await_that, rate_stream, submit_by_hand

pytestmark = pytest.mark.faults
_KILL = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"


@of_each_engine
def test_a_stream_whose_applicationmaster_was_killed_is_followed(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    for process in stream.leader(before):
        process.send(signal.SIGKILL)
    clock = Clock()
    await_that(lambda: not stream.application(before).alive, "YARN learns of it")
    stream.follow(before + 1)
    stream.conclude(tell, "ApplicationMaster SIGKILLed", f"generation {before + 1} follows", clock.seconds)


@of_each_engine
def test_a_stream_that_a_person_killed_is_reported_and_left_alone(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    app = stream.application(before)
    killed = stream.minicluster.hadoop_main(_KILL, "application", "-kill", app.id, as_="hdfs")
    assert killed.returncode == 0, killed.stderr
    await_that(lambda: not stream.application(before).alive, "YARN has ended it")
    assert "was killed by user hdfs at" in stream.application(before).diagnostics
    report = stream.reconciler.run(Mode.WATCH)
    assert "was killed by hdfs" in report.why
    assert stream.look().generation == before
    clock = Clock()
    set_desired(stream.subject, DesiredState.RUNNING, "a person wants it back")
    stream.follow(before + 1)
    seen = "reported as killed by hdfs, left alone until a person started it"
    stream.conclude(tell, "application killed by a person", seen, clock.seconds)


def test_an_application_that_comes_after_it_was_given_up_writes_nothing(stream: Kept, tell: Tell) -> None:
    """YARN starts it only when its fence has been taken: its driver can't be localised, and the next one is."""
    with waiting_application(stream) as (late, app):
        claim = stream.look().claim
        assert claim is not None
        stream.subject.folder.take_fence(claim.fence)
    clock = Clock()
    await_that(lambda: not stream.application(late).alive, "the late application ends")
    ended = stream.session.yarn.application(app.id)
    assert not ended.succeeded
    assert claim.fence in ended.diagnostics
    stream.follow(late + 1)
    seen = f"generation {late} could not start without its fence, {late + 1} follows"
    stream.conclude(tell, "late application", seen, clock.seconds)


def test_a_submission_whose_staging_folder_is_removed_is_followed(stream: Kept, tell: Tell) -> None:
    with waiting_application(stream) as (unlucky, app):
        assert stream.session.hdfs.delete(f"/user/{app.user}/.sparkStaging/{app.id}", recursive=True)
    clock = Clock()
    await_that(lambda: not stream.application(unlucky).alive, "YARN can't start it")
    stream.follow(unlucky + 1)
    seen = f"YARN could not localise generation {unlucky}, {unlucky + 1} follows"
    stream.conclude(tell, "staging folder removed before the driver starts", seen, clock.seconds)


@contextmanager
def waiting_application(stream: Kept) -> Iterator[tuple[int, Application]]:
    """Restart it while the NodeManager is paused; give the new generation and its application, which YARN can't start.

    The NodeManager goes on at the end.
    """
    with stream.restart(Moment.ANSWERED, claims) as restart:
        stream.minicluster.pause("nodemanager")
    try:
        restart.supervisor.succeed()
        app = stream.application(restart.after)
        assert app.state is ApplicationState.ACCEPTED
        yield restart.after, app
    finally:
        stream.minicluster.resume("nodemanager")


def test_a_stream_whose_queue_is_full_waits_and_is_left_alone(stream: Kept, tell: Tell) -> None:
    with stream.restart(Moment.ANSWERED, claims) as restart, full_queue(stream):
        restart.gate.open()
        restart.supervisor.succeed()
        stream.supervisors.begin().succeed()
        waiting = stream.application(restart.after)
        assert waiting.state is ApplicationState.ACCEPTED
    clock = Clock()
    assert stream.await_commits(restart.after) == restart.after
    assert stream.application(restart.after).id == waiting.id
    seen = "two supervisors left the waiting application alone; it started when there was room"
    stream.conclude(tell, "queue full", seen, clock.seconds)


@contextmanager
def full_queue(stream: Kept) -> Iterator[None]:
    """Take all memory of the queue with a driver: a container that sleeps would be no ApplicationMaster for long."""
    other = rate_stream("all-memory", TicketCredentials())
    memory = {"spark.driver.memory": "13g", "spark.driver.memoryOverhead": "1g"}
    submit_by_hand(stream.minicluster, other, tag=other.name, **memory)
    app = max(stream.session.yarn.applications(other.name), key=lambda found: found.id)
    try:
        await_that(lambda: free_memory(stream.minicluster) == 0, "the queue is full")
        yield
    finally:
        stream.session.yarn.kill(app.id, "the test is over", timedelta(minutes=2))


def free_memory(minicluster: Minicluster) -> int:
    """Return the megabytes that the NodeManager has left."""
    answer = next(daemon.answer for daemon in minicluster.status() if daemon.name == "nodemanager")
    return int(answer.removeprefix("healthy, ").removesuffix(" MB free"))
