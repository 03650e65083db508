"""The history of each generation of a stream, gathered from observations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.contract import pushes
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.pulse.heartbeat import verified

# Within this time, a checkpoint may still be completed that a TaskManager acknowledged before its end.
_A_MOMENT = timedelta(seconds=3)


@dataclass
class Life:
    """One generation. `issued` bounds the issue of its first tokens; `hard` is its horizon, None without one, and moves
    with each push that its driver confirms."""

    generation: int
    issued: datetime
    hard: datetime | None
    plan: datetime | None
    application: str | None = None
    running: bool = False
    first_commit: datetime | None = None
    died: datetime | None = None

    @property
    def margin(self) -> timedelta | None:
        """Return how long before its horizon it died; None while it lives, or without a horizon."""
        return self.hard - self.died if self.hard and self.died else None


@dataclass
class History:
    """The generations of one stream, and the news in each observation."""

    spec: StreamSpec
    lives: dict[int, Life] = field(default_factory=dict)
    confirmed: set[TokenPush] = field(default_factory=set)
    last_commit: datetime | None = None

    def take(self, observation: Observation) -> Iterator[str]:
        """Record an observation, and yield a line for each thing that is new in it."""
        if observation.claim and observation.claim.generation not in self.lives:
            yield self._claimed(observation)
        for number, app in observation.applications:
            life = self.lives.get(number)
            if life is None:
                continue
            if life.application is None:
                life.application = app.id
                yield f"generation {number} is {app.id}"
            if app.state is ApplicationState.RUNNING and not life.running:
                life.running = True
                yield f"generation {number} is RUNNING"
            if not app.alive and life.died is None:
                life.died = app.finished or observation.now
                yield self._died(life, app.final_status)
        self.last_commit = max(
            (point.last_commit for point in observation.checkpoints if point.last_commit), default=None
        )
        yield from self._verified(observation)
        yield from self._pushed(observation)

    @property
    def newest(self) -> Life | None:
        return self.lives[max(self.lives)] if self.lives else None

    @property
    def _before_that(self) -> str:
        return "fresh ones are" if self.spec.credentials.refresh else "restart"

    def _claimed(self, observation: Observation) -> str:
        claim = observation.claim
        assert claim is not None
        ends = horizon_of(self.spec, observation)
        hard = ends.hard if ends else None
        self.lives[claim.generation] = Life(claim.generation, claim.claimed_at, hard, ends.plan if ends else None)
        until = (
            f"tokens end at {hard:%H:%M:%S}, {self._before_that} planned for {ends.plan:%H:%M:%S}"
            if ends and ends.plan
            else ("makes its own tokens, no horizon")
        )
        return f"generation {claim.generation} was claimed ({claim.reason}); {until}"

    def _died(self, life: Life, final_status: str) -> str:
        margin = f", {life.margin.total_seconds():.0f} s before its horizon" if life.margin else ""
        return f"generation {life.generation} is dead ({final_status}){margin}"

    def _pushed(self, observation: Observation) -> Iterator[str]:
        push = pushes(observation.files, observation.generation).confirmed
        if push and push not in self.confirmed:
            self.confirmed.add(push)
            self.lives[push.generation].hard = push.until
            yield f"generation {push.generation} uses fresh tokens, until {push.until:%H:%M:%S}"

    def _verified(self, observation: Observation) -> Iterator[str]:
        life = self.lives.get(observation.generation)
        if life and life.first_commit is None and verified(observation):
            life.first_commit = observation.checkpoints[0].last_commit or observation.now
            took = life.first_commit - life.issued
            yield f"generation {life.generation} has its first new commit, {took.total_seconds():.0f} s after its claim"


@dataclass
class Loss:
    """The loss of a stream's TaskManager. `works` is when it completed the first checkpoint since, None before."""

    history: History
    application: str
    at: datetime
    killed: int
    works: datetime | None = None

    def look(self) -> bool:
        """Return True once: when it works again."""
        last = self.history.last_commit
        if self.works or last is None or last <= self.at + _A_MOMENT:
            return False
        self.works = last
        return True
