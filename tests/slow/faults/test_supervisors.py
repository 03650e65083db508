"""A supervisor that is killed at any step of a restart is followed by another, also if it was only frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from tests.faults.kept import Clock, Kept, begins_stop, claims, lists_applications
from tests.faults.proxies import Moment, Request
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
