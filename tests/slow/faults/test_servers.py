"""Servers that fail over, freeze and come back while a stream runs or is restarted."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cluster.streams import await_that
from tests.faults.kept import Clock, Kept, begins_stop, claims
from tests.faults.proxies import Moment
from tests.faults.table import Tell

pytestmark = pytest.mark.faults


def test_a_restart_goes_on_while_a_resourcemanager_is_frozen(stream: Kept, tell: Tell) -> None:
    """It is resumed when the other one has taken over, and says for a moment that it is active, too."""
    before = stream.look().generation
    stream.ask_for_restart()
    with stream.proxies.gate(Moment.ANSWERED, partial(begins_stop, before)) as gate:
        supervisor = stream.supervisors.begin()
        gate.await_request()
        clock = Clock()
        frozen = stream.minicluster.active_resourcemanager()
        stream.minicluster.pause(frozen)
    try:
        elected = stream.minicluster.active_resourcemanager()
        assert elected != frozen
    finally:
        stream.minicluster.resume(frozen)
    supervisor.succeed()
    assert stream.await_commits(before + 1) == before + 1
    seen = f"{elected} took over from {frozen}; the same supervisor submitted generation {before + 1}"
    stream.conclude(tell, "ResourceManager frozen in the middle of a restart", seen, clock.seconds)


def test_a_claim_that_a_standby_refuses_is_made_at_the_other_namenode(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    stream.ask_for_restart()
    with stream.proxies.gate(Moment.ASKED, partial(claims, before + 1)) as gate:
        supervisor = stream.supervisors.begin()
        gate.await_request()
        clock = Clock()
        active = stream.minicluster.failover()
    supervisor.succeed()
    assert stream.await_commits(before + 1) == before + 1
    stream.conclude(tell, "NameNode failover before a claim arrives", f"{active} granted it", clock.seconds)


def test_a_stream_is_followed_when_its_nodemanager_was_killed_and_is_back(stream: Kept, tell: Tell) -> None:
    """YARN counts the containers as lost; their processes run on until their driver learns it."""
    before = stream.look().generation
    driver = stream.driver(before)
    stream.minicluster.kill("nodemanager")
    clock = Clock()
    stream.minicluster.start("nodemanager")
    await_that(lambda: all(process.state() == "dead" for process in driver), "the lost driver ends by itself")
    last = stream.commit()
    await_that(lambda: back(stream, last), "it commits again")
    recovery = clock.seconds
    after = stream.look().generation
    seen = f"the old driver ended by itself; generation {before} was followed by {after}"
    if after == before:
        # A lost container counts against no limit of attempts (RMAppAttemptImpl.shouldCountTowardsMaxAttemptRetry).
        seen = f"the old driver ended by itself; YARN started generation {before} once more"
    stream.conclude(tell, "NodeManager killed and back", seen, recovery)


def back(stream: Kept, last: int) -> bool:
    """Tell whether it has committed since; supervise it if YARN has ended it, which may come late."""
    current = stream.look().current
    if current is None or not current.alive:
        stream.supervisors.begin().succeed()
    return stream.commit() > last


def test_nothing_is_done_to_a_stream_whose_datanode_is_paused(stream: Kept, tell: Tell) -> None:
    before = stream.look()
    stream.minicluster.pause("datanode")
    try:
        paused = Clock()
        looks = [stream.supervisors.begin() for _ in range(2)]
        paused.pass_until(40)
    finally:
        stream.minicluster.resume("datanode")
    clock = Clock()
    stream.await_a_further_commit()
    recovery = clock.seconds
    for look in looks:
        look.succeed()
    assert [app.id for _, app in stream.look().applications] == [app.id for _, app in before.applications]
    assert stream.application(before.generation).alive
    seen = "two supervisors looked and did nothing; its driver went on by itself"
    stream.conclude(tell, "DataNode paused for 40 s", seen, recovery)
