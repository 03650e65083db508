"""A restart goes on whatever its step: when its supervisor is killed, by another; when YARN fails over, by itself."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.live.faults.kept import (
    Clock,
    Kept,
    Wanted,
    begins_stop,
    claims,
    lists_applications,
    of_each_engine,
    of_flink,
)
from tests.live.faults.proxies import Moment, Request
from tests.live.faults.table import Tell

pytestmark = pytest.mark.faults


def asks_for_application(_: int, request: Request) -> bool:
    return "/ws/v1/cluster/apps/application_" in request.target


def places_fence(before: int, request: Request) -> bool:
    return request.operation == "RENAME" and f"/fence-{before + 1:06d}-" in request.target


def looks_for_its_application(before: int, request: Request) -> bool:
    return lists_applications(request) and f"-{before + 1}" in request.query


def deletes_staging(_: int, request: Request) -> bool:
    return request.operation == "DELETE" and any(f"/{name}/" in request.target for name in (".sparkStaging", ".flink"))


def tells_that_it_stopped(before: int, request: Request) -> bool:
    return request.writes(f"stopped-{before:06d}")


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
    Step("while it stops", Moment.ASKED, asks_for_application),
    Step("after its fence", Moment.ANSWERED, places_fence),
    Step("before its claim", Moment.ASKED, claims),
    Step("after its submission", Moment.ASKED, looks_for_its_application),
    Step("before it cleans up", Moment.ASKED, deletes_staging),
)

# Between claim and submission a supervisor is killed in CI.
STEPS_OF_FAILOVERS = (*STEPS, Step("after its claim", Moment.ANSWERED, claims))
# A driver of Spark's writes that itself.
SAVED = Step("after its savepoint", Moment.ASKED, tells_that_it_stopped)


@of_each_engine
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.words)
def test_a_supervisor_killed_at_a_step_of_a_restart_is_followed_by_another(
    stream: Kept, tell: Tell, step: Step
) -> None:
    kill_at(step, stream, tell)


@of_flink
def test_a_supervisor_killed_after_the_savepoint_is_followed_by_another(stream: Kept, tell: Tell) -> None:
    kill_at(SAVED, stream, tell)


def kill_at(step: Step, stream: Kept, tell: Tell) -> None:
    with stream.restart(step.moment, step.wanted) as restart:
        restart.supervisor.kill()
        restart.gate.open(lose=True)
    clock = Clock()
    stream.follow(restart.after)
    recovery = clock.seconds
    assert staging_of_the_dead(stream) == []
    fault = f"supervisor SIGKILLed {step.words}"
    stream.conclude(tell, fault, f"the next one went on to generation {restart.after}", recovery)


@of_each_engine
@pytest.mark.parametrize("step", STEPS_OF_FAILOVERS, ids=lambda step: step.words)
def test_a_restart_goes_on_when_yarn_fails_over_at_one_of_its_steps(stream: Kept, tell: Tell, step: Step) -> None:
    with stream.restart(step.moment, step.wanted) as restart:
        clock = Clock()
        elected = stream.minicluster.failover_rm()
    stream.follow(restart.after, restart.supervisor)
    assert staging_of_the_dead(stream) == []
    seen = f"{elected} took over; the same supervisor went on to generation {restart.after}"
    stream.conclude(tell, f"ResourceManager failover {step.words}", seen, clock.seconds)


def staging_of_the_dead(stream: Kept) -> list[str]:
    """Return what ended applications left of what their clients uploaded, which may hold a copy of the keytab."""
    subject = stream.subject
    dead = (app for _, app in stream.look().applications if not app.alive)
    folders = (path for app in dead for path in subject.engine.leftovers(app, subject.cluster, subject.spec))
    return sorted(path for path in folders if stream.session.hdfs.names(path))
