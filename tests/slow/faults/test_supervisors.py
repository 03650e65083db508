"""A supervisor that is killed at any step of a restart is followed by another; two at once restart once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import psutil
import pytest

from tests.cluster.streams import await_that
from tests.faults.kept import Clock, Kept, begins_stop, claims, lists_applications
from tests.faults.proxies import Moment, Request
from tests.faults.supervisors import Supervisor
from tests.faults.table import Tell

pytestmark = pytest.mark.faults
# Of the generation that the supervisor restarts, and of a request.
Wanted = Callable[[int, Request], bool]


def asks_for_application(_: int, request: Request) -> bool:
    return "/ws/v1/cluster/apps/application_" in request.target


def places_fence(generation: int, request: Request) -> bool:
    return request.operation == "RENAME" and f"/fence-{generation + 1:06d}-" in request.target


def looks_for_its_application(generation: int, request: Request) -> bool:
    return lists_applications(request) and f"-{generation + 1}" in request.query


def deletes_staging(_: int, request: Request) -> bool:
    return request.operation == "DELETE" and ".sparkStaging" in request.target


@dataclass(frozen=True)
class Step:
    """A step of a restart, by the request that is held while its supervisor is killed.

    A request that is held before the server sees it is lost with the supervisor.
    """

    words: str
    moment: Moment
    wanted: Wanted


STEPS = (
    Step("before its stop marker", Moment.ASKED, begins_stop),
    Step("after its stop marker", Moment.ANSWERED, begins_stop),
    Step("while the driver stops", Moment.ASKED, asks_for_application),
    Step("after its fence", Moment.ANSWERED, places_fence),
    Step("before its claim", Moment.ASKED, lambda generation, request: claims(generation + 1, request)),
    Step("after its submission", Moment.ASKED, looks_for_its_application),
    Step("before it cleans up", Moment.ASKED, deletes_staging),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.words)
def test_a_supervisor_killed_at_a_step_of_a_restart_is_followed_by_another(
    stream: Kept, tell: Tell, step: Step
) -> None:
    before = stream.look().generation
    stream.ask_for_restart()
    with stream.proxies.gate(step.moment, partial(step.wanted, before)) as gate:
        killed = stream.supervisors.begin()
        gate.await_request()
        killed.kill()
        gate.open(lose=True)
    clock = Clock()
    stream.supervisors.begin().succeed()
    assert stream.await_commits(before + 1) == before + 1
    fault = f"supervisor SIGKILLed {step.words}"
    stream.conclude(tell, fault, f"the next one went on to generation {before + 1}", clock.seconds)


def test_a_submission_outlives_its_killed_supervisor_and_counts(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    stream.ask_for_restart()
    killed = stream.supervisors.begin()
    await_that(lambda: submits(killed), "spark-submit runs", 120)
    killed.kill()
    clock = Clock()
    stream.supervisors.begin().succeed()
    assert stream.await_commits(before + 1) == before + 1
    seen = f"its spark-submit went on, and generation {before + 1} counts"
    stream.conclude(tell, "supervisor SIGKILLed while spark-submit runs", seen, clock.seconds)


def submits(supervisor: Supervisor) -> bool:
    assert supervisor.running, supervisor.said
    return any("SparkSubmit" in " ".join(_words(child)) for child in psutil.Process(supervisor.pid).children())


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_two_supervisors_that_claim_at_the_same_moment_submit_once(stream: Kept, tell: Tell) -> None:
    """Both have stopped the old generation, and both ask for the claim before either has an answer."""
    before = stream.look().generation
    stream.ask_for_restart()
    wanted = partial(claims, before + 1)
    clock = Clock()
    with (
        stream.proxies.gate(Moment.ASKED, wanted) as first,
        stream.proxies.gate(Moment.ASKED, wanted) as second,
    ):
        rivals = [stream.supervisors.begin(), stream.supervisors.begin()]
        first.await_request()
        second.await_request()
    for rival in rivals:
        rival.succeed()
    assert stream.await_commits(before + 1) == before + 1
    assert sum("submitted generation" in rival.said for rival in rivals) == 1
    seen = "one claimed and submitted; the other said so and found it running"
    stream.conclude(tell, "two supervisors claim at the same moment", seen, clock.seconds)


def test_a_frozen_supervisor_that_wakes_late_claims_nothing(stream: Kept, tell: Tell) -> None:
    """It was about to claim; another one has restarted the stream meanwhile."""
    before = stream.look().generation
    stream.ask_for_restart()
    with stream.proxies.gate(Moment.ASKED, partial(claims, before + 1)) as gate:
        frozen = stream.supervisors.begin()
        gate.await_request()
        frozen.freeze()
        clock = Clock()
        stream.supervisors.begin().succeed()
        assert stream.await_commits(before + 1) == before + 1
        recovery = clock.seconds
        frozen.wake()
    frozen.succeed()
    assert stream.look().generation == before + 1
    assert "submitted generation" not in frozen.said
    seen = f"another one submitted generation {before + 1}; the woken one lost the claim"
    stream.conclude(tell, "supervisor frozen before its claim, woken after another's", seen, recovery)
