"""Streams that end again and again, as the policies of restarts and of blindness see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.plan import Note, Step
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.ends.restart_pace import Attempt, next_attempt
from airflow_kstream.policy.streams.pulse.blindness import ClusterSight, Sight, reason_to_wake
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, past_end, watched

POLICY = FailurePolicy()
MINUTE, HOUR, DAY, WEEK = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(days=7)


def end(number: int, at: timedelta, lasted: timedelta = MINUTE, **more: object) -> PastEnd:
    usual = {"kind": EndKind.CODE, "fingerprint": f"Error {number}", "worked": False} | more
    return PastEnd(number, at=START + at, claimed=START + at - lasted, lasted=lasted, **usual)  # type: ignore[arg-type]


def after(ends: Sequence[PastEnd], cleared: datetime | None = None, policy: FailurePolicy = POLICY) -> Attempt:
    attempt = next_attempt(policy, ends, "orders", cleared)
    assert attempt is not None
    return attempt


def outage(stream: str, hours: float, lasted: timedelta, began: timedelta = timedelta()) -> list[PastEnd]:
    """Return a stream's ends, and the first after the outage, while its Kafka is away: each attempt lives for `lasted`
    before it gives up."""
    ends = [end(1, began, shared=True, fingerprint="Kafka")]
    while ends[-1].at < START + hours * HOUR:
        attempt = next_attempt(POLICY, ends, stream, None)
        assert attempt
        assert not attempt.breaker
        at = attempt.at + lasted - START
        ends.append(end(len(ends) + 1, at, lasted, shared=True, fingerprint="Kafka"))
    return ends


def dead(diagnostics: str = "", *, lived: timedelta = HOUR, commits: int = 1) -> SimulatedYarn:
    """Return a stream whose first generation lived so long and ended with these diagnostics five minutes ago."""
    yarn = SimulatedYarn()
    yarn.carry_out(step(yarn, Mode.ENSURE))
    yarn.arrive()
    for _ in range(commits):
        yarn.pass_time(20)
    yarn.now = START + lived
    yarn.end(yarn.running[0].id, ApplicationState.FAILED)
    yarn.applications = [(number, replace(app, diagnostics=diagnostics)) for number, app in yarn.applications]
    yarn.now += timedelta(minutes=5)
    return yarn


def step(yarn: SimulatedYarn, mode: Mode = Mode.WATCH) -> Step:
    return next_step(TICKET_SPEC, yarn.look(), watched(yarn.look()), mode)


def noted(yarn: SimulatedYarn) -> PastEnd:
    seen = step(yarn)
    assert isinstance(seen, Note)
    yarn.carry_out(seen)
    return seen.end


def breaking(yarn: SimulatedYarn) -> SimulatedYarn:
    """Give the stream a past of the same error, whose last end comes an hour after the first."""
    yarn.ends = [
        past_end(
            number - 3,
            START + (number - 1) * 30 * MINUTE,
            EndKind.CODE,
            fingerprint="java.lang.IllegalStateException: x",
        )
        for number in range(1, 3)
    ]
    return yarn


PATIENCE = 300.0
SEES = Sight(looked=0.0, patience=PATIENCE)


def dark(plans: Sequence[float | None], until: int, *, shared: bool = True) -> list[tuple[int, int]]:
    """Return when each stream of a cluster that nobody sees is woken. Looks come often, and always in one order."""
    cluster, sights, woken = ClusterSight(0.0), [replace(SEES, shared=shared, plan=plan) for plan in plans], []
    for now in range(0, until, 5):
        for number, before in enumerate(sights):
            sight = before.failed(now, shared=shared)
            cluster = cluster.failed(now, sight)
            if reason_to_wake(sight, cluster, now):
                woken.append((now, number))
                cluster = cluster.woke(now, sight)
                sight = replace(sight, wakings=sight.wakings + 1, looked=float(now), failing_since=None)
            sights[number] = sight
    return woken
