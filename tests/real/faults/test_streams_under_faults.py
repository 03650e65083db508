"""Faults on a real cluster: one stream is restarted again and again, and loses and doubles no row."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import asdict

import pytest
from airflow.triggers.base import TriggerEvent

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.triggers.streams import StreamTrigger
from tests.live.faults.kept import Clock, Kept, begins_stop, claims, lists_applications, of_each_engine, of_flink_later
from tests.live.faults.proxies import Moment
from tests.live.faults.table import Tell
from tests.live.streams import await_that, fields

KDC_IS_DOWN_FOR = 60
NAMENODES, NAMENODES_ARE_AWAY_FOR = ("nn1", "nn2"), 60


@of_each_engine
def test_a_supervisor_killed_between_claim_and_submission_is_followed_by_another(stream: Kept, tell: Tell) -> None:
    """Nothing of its claim can arrive: the next supervisor gives it up and claims the next generation."""
    with stream.restart(Moment.ANSWERED, claims) as restart:
        restart.supervisor.kill()
    clock = Clock()
    stream.follow(restart.after + 1, stream.impatient())
    recovery = clock.seconds
    assert restart.after not in dict(stream.look().applications)
    seen = f"claim {restart.after} given up, generation {restart.after + 1} submitted"
    stream.conclude(tell, "supervisor SIGKILLed between claim and submission", seen, recovery)


@of_each_engine
def test_a_restart_goes_on_when_the_resourcemanager_fails_over_in_the_middle(stream: Kept, tell: Tell) -> None:
    """The job has its stop marker, and nobody knows yet that it has stopped."""
    with stream.restart(Moment.ANSWERED, begins_stop) as restart:
        clock = Clock()
        elected = stream.minicluster.failover_rm()
    stream.follow(restart.after, restart.supervisor)
    seen = f"{elected} took over; the same supervisor submitted generation {restart.after}"
    stream.conclude(tell, "ResourceManager failover in the middle of a restart", seen, clock.seconds)


@of_flink_later
def test_a_job_that_yarn_gave_up_writes_nothing_when_it_wakes(stream: Kept, tell: Tell) -> None:
    """Its NodeManager is dead meanwhile, so nobody kills it: it wakes beside its successor."""
    before = stream.look().generation
    writers = stream.writers(before)
    assert len(writers) >= 2
    stream.minicluster.kill("nodemanager")
    for process in writers:
        process.pause()
    clock = Clock()
    await_that(lambda: not stream.application(before).alive, "YARN gives it up")
    given_up = clock.seconds
    stream.minicluster.start("nodemanager")
    stream.follow(before + 1)
    recovery = clock.seconds
    assert {process.state() for process in writers} == {"paused"}
    for process in writers:
        process.resume()
    await_that(lambda: all(process.state() == "dead" for process in writers), "what woke ends by itself")
    stream.await_a_further_commit()
    seen = f"YARN gave it up after {given_up:.0f} s; it woke beside generation {before + 1} and ended by itself"
    stream.conclude(tell, "job frozen until YARN gave it up, then woken", seen, recovery)


@of_each_engine
def test_a_restart_goes_on_when_both_namenodes_are_back(stream: Kept, tell: Tell) -> None:
    """They are killed when the job has its stop marker, and nobody can read or write."""
    with stream.restart(Moment.ANSWERED, begins_stop) as restart:
        for namenode in NAMENODES:
            stream.minicluster.kill(namenode)
        away = Clock()
    away.pass_until(NAMENODES_ARE_AWAY_FOR)
    for namenode in NAMENODES:
        stream.minicluster.start(namenode)
    active = stream.minicluster.failover()
    clock = Clock()
    seen = f"{active} is active; its supervisor waited and went on"
    if restart.supervisor.end() != 0:
        seen = f"{active} is active; its supervisor gave up ({restart.supervisor.said[-200:]}), the next one went on"
    stream.keep(restart.after)
    stream.conclude(tell, f"both NameNodes away {NAMENODES_ARE_AWAY_FOR} s in a restart", seen, clock.seconds)


def test_a_restart_goes_on_when_the_kdc_is_back(stream: Kept, tell: Tell) -> None:
    """It goes down in the middle of the restart: the old generation is stopped, and nobody can log in."""
    with stream.restart(Moment.ANSWERED, begins_stop) as restart:
        stream.minicluster.kill("kdc")
        down = Clock()
    down.pass_until(KDC_IS_DOWN_FOR)
    stream.minicluster.start("kdc")
    clock = Clock()
    seen = "its supervisor waited and went on"
    if restart.supervisor.end() != 0:
        # The servers' own logins failed, too: its client may have met one that has not tried again yet.
        seen = "its supervisor waited, its client failed, and the next supervisor went on"
    # So may the ApplicationMaster: a generation that fails of it is followed as any other.
    stream.keep(restart.after)
    stream.conclude(tell, f"KDC down {KDC_IS_DOWN_FOR} s in a restart", seen, clock.seconds)


def test_an_edited_connection_reaches_the_task_that_waits(
    stream: Kept, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The servers move; the trigger sees nothing until a person edits the connection, and then what was asked."""
    connect(monkeypatch, stream.minicluster, **stream.proxies.addresses)
    events: list[TriggerEvent] = []
    waiting = threading.Thread(target=lambda: events.append(asyncio.run(first_event(stream.spec.name))))
    with stream.proxies.gate(Moment.ANSWERED, lists_applications) as gate:
        waiting.start()
        gate.await_request()
    stream.proxies.away = True
    try:
        before = stream.ask_for_restart()
        for _ in range(10):
            assert stream.proxies.refused.acquire(timeout=60)
        assert events == []
        clock = Clock()
        connect(monkeypatch, stream.minicluster)
        waiting.join(60)
        (event,) = events
        assert "requested a restart" in event.payload["why"]
    finally:
        stream.proxies.away = False
        waiting.join(60)
    told = clock.seconds
    stream.follow(before + 1)
    seen = f"the waiting trigger fired {told:.1f} s after the edit"
    stream.conclude(tell, "servers moved, then the connection edited", seen, clock.seconds)


def connect(environment: pytest.MonkeyPatch, minicluster: Minicluster, **addresses: str) -> None:
    """Write the Airflow connection `moved`, as an administrator edits it."""
    extra = {name: value for name, value in asdict(fields(minicluster, **addresses)).items() if value}
    environment.setenv("AIRFLOW_CONN_MOVED", json.dumps({"conn_type": "kstream", "extra": extra}))


async def first_event(stream: str) -> TriggerEvent:
    """Wait as a deferred task does."""
    async for event in StreamTrigger("moved", stream, every_seconds=1.0).run():
        return event
    raise AssertionError("the trigger ended without an event")
