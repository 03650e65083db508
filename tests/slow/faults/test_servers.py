"""Servers that fail over, freeze and come back while a stream runs or is restarted."""

from __future__ import annotations

import pytest

from tests.live.faults.cluster import EXPIRY
from tests.live.faults.kept import Clock, Kept, begins_stop, claims, of_each_engine
from tests.live.faults.proxies import Moment
from tests.live.faults.table import Tell
from tests.live.streams import await_that

pytestmark = pytest.mark.faults


@of_each_engine
def test_a_restart_goes_on_while_a_resourcemanager_is_frozen(stream: Kept, tell: Tell) -> None:
    """It is resumed when the other one has taken over, and says for a moment that it is active, too."""
    with stream.restart(Moment.ANSWERED, begins_stop) as restart:
        clock = Clock()
        frozen = stream.minicluster.active_resourcemanager()
        stream.minicluster.pause(frozen)
    try:
        elected = stream.minicluster.active_resourcemanager()
        assert elected != frozen
    finally:
        stream.minicluster.resume(frozen)
    stream.follow(restart.after, restart.supervisor)
    seen = f"{elected} took over from {frozen}; the same supervisor submitted generation {restart.after}"
    stream.conclude(tell, "ResourceManager frozen in the middle of a restart", seen, clock.seconds)


@of_each_engine
def test_a_claim_that_a_standby_refuses_is_made_at_the_other_namenode(stream: Kept, tell: Tell) -> None:
    with stream.restart(Moment.ASKED, claims) as restart:
        clock = Clock()
        active = stream.minicluster.failover()
    stream.follow(restart.after, restart.supervisor)
    stream.conclude(tell, "NameNode failover before a claim arrives", f"{active} granted it", clock.seconds)


@of_each_engine
def test_a_stream_is_followed_when_its_nodemanager_was_killed_and_is_back(stream: Kept, tell: Tell) -> None:
    """YARN counts the containers as lost; their processes run on until the job learns it."""
    before = stream.look().generation
    writers = stream.writers(before)
    stream.minicluster.kill("nodemanager")
    clock = Clock()
    stream.minicluster.start("nodemanager")
    await_that(lambda: all(process.state() == "dead" for process in writers), "what was lost ends by itself")
    last = stream.commit()
    await_that(lambda: back(stream, last), "it commits again")
    recovery = clock.seconds
    after = stream.look().generation
    seen = f"the old job ended by itself; generation {before} was followed by {after}"
    if after == before:
        # A lost container counts against no limit of attempts (RMAppAttemptImpl.shouldCountTowardsMaxAttemptRetry).
        seen = f"the old job ended by itself; YARN started generation {before} once more"
    stream.conclude(tell, "NodeManager killed and back", seen, recovery)


@of_each_engine
def test_a_job_whose_node_stays_away_is_followed_after_twice_the_expiry_of_an_am(stream: Kept, tell: Tell) -> None:
    """Nobody can tell whether it is dead, and it isn't: it is frozen, and wakes beside its successor."""
    before = stream.look().generation
    writers = stream.writers(before)
    stream.minicluster.kill("nodemanager")
    for process in writers:
        process.pause()
    await_that(lambda: not stream.application(before).alive, "YARN gives it up")
    supervisor = stream.truthful()

    def claimed() -> bool:
        return stream.look().generation > before

    await_that(lambda: claimed() or "no node of YARN's runs" in supervisor.said, "its successor waits for a node", 300)
    stream.minicluster.start("nodemanager")
    await_that(claimed, "its successor is claimed")
    seen = stream.look()
    lost = stream.application(before).finished
    assert seen.claim is not None
    assert lost is not None
    waited = seen.claim.claimed_at - lost
    assert waited >= 2 * EXPIRY
    clock = Clock()
    stream.follow(before + 1, supervisor)
    recovery = clock.seconds
    for process in writers:
        process.resume()
    await_that(lambda: all(process.state() == "dead" for process in writers), "what woke ends by itself")
    stream.await_a_further_commit()
    words = f"generation {before + 1} was claimed {waited.total_seconds():.0f} s after YARN gave it up"
    stream.conclude(tell, "node away with a frozen job", words, recovery)


def back(stream: Kept, last: int) -> bool:
    """Tell whether it has committed since; supervise it if YARN has ended it, which may come late."""
    current = stream.look().current
    if current is None or not current.alive:
        stream.supervisors.begin().succeed()
    return stream.commit() > last


@of_each_engine
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
    seen = "two supervisors looked and did nothing; its job went on by itself"
    stream.conclude(tell, "DataNode paused for 40 s", seen, recovery)
