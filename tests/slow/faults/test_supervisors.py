"""Two supervisors at once restart a stream once, also if one of them is frozen, or only its client is left.

A client that runs goes on when YARN fails over, too.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.live.faults.kept import Clock, Kept, claims, of_each_engine
from tests.live.faults.proxies import Moment
from tests.live.faults.supervisors import Supervisor
from tests.live.faults.table import Tell
from tests.live.streams import await_that

pytestmark = pytest.mark.faults


@of_each_engine
def test_a_submission_outlives_its_killed_supervisor_and_counts(stream: Kept, tell: Tell) -> None:
    before = stream.ask_for_restart()
    killed = stream.supervisors.begin()
    await_that(lambda: submits(killed), "its client runs")
    killed.kill()
    clock = Clock()
    stream.follow(before + 1)
    seen = f"its client went on, and generation {before + 1} counts"
    stream.conclude(tell, "supervisor SIGKILLed while its client runs", seen, clock.seconds)


@of_each_engine
def test_a_submission_goes_on_when_yarn_fails_over_while_its_client_runs(stream: Kept, tell: Tell) -> None:
    before = stream.ask_for_restart()
    supervisor = stream.supervisors.begin()
    await_that(lambda: submits(supervisor), "its client runs")
    clock = Clock()
    elected = stream.minicluster.failover_rm()
    stream.follow(before + 1, supervisor)
    seen = f"{elected} took over; its client found it, and generation {before + 1} runs"
    stream.conclude(tell, "ResourceManager failover while a client runs", seen, clock.seconds)


@of_each_engine
def test_a_client_killed_before_yarn_knows_its_application_is_followed(stream: Kept, tell: Tell) -> None:
    before = stream.ask_for_restart()
    supervisor = stream.supervisors.begin()
    await_that(lambda: submits(supervisor), "its client runs")
    for client in supervisor.clients():
        client.kill()
    clock = Clock()
    assert supervisor.end() != 0
    assert "left no application" in supervisor.said
    stream.follow(before + 2)
    seen = f"claim {before + 1} given up, and said so; the next one submitted generation {before + 2}"
    stream.conclude(tell, "client SIGKILLed before YARN knows its application", seen, clock.seconds)


def submits(supervisor: Supervisor) -> bool:
    assert supervisor.running, supervisor.said
    return bool(supervisor.clients())


@of_each_engine
def test_two_supervisors_that_claim_at_the_same_moment_submit_once(stream: Kept, tell: Tell) -> None:
    """Both have stopped the old generation, and both ask for the claim before either has an answer."""
    before = stream.ask_for_restart()
    wanted = partial(claims, before)
    clock = Clock()
    with stream.proxies.gate(Moment.ASKED, wanted) as first, stream.proxies.gate(Moment.ASKED, wanted) as second:
        rivals = [stream.supervisors.begin(), stream.supervisors.begin()]
        first.await_request()
        second.await_request()
    for rival in rivals:
        stream.follow(before + 1, rival)
    assert sum(f"submitted generation {before + 1}" in rival.said for rival in rivals) == 1
    seen = "one claimed and submitted; the other said so and found it running"
    stream.conclude(tell, "two supervisors claim at the same moment", seen, clock.seconds)


@of_each_engine
def test_a_frozen_supervisor_that_wakes_late_claims_nothing(stream: Kept, tell: Tell) -> None:
    """It was about to claim; another one has restarted the stream meanwhile."""
    with stream.restart(Moment.ASKED, claims) as restart:
        restart.supervisor.freeze()
        clock = Clock()
        stream.follow(restart.after)
        recovery = clock.seconds
        restart.supervisor.wake()
    restart.supervisor.succeed()
    assert stream.look().generation == restart.after
    assert "submitted generation" not in restart.supervisor.said
    seen = f"another one submitted generation {restart.after}; the woken one lost the claim"
    stream.conclude(tell, "supervisor frozen before its claim, woken after another's", seen, recovery)
