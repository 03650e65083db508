"""A whole watch over jobs for which nothing works: whose matter it is, and what a healthy one, or nobody, notices."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.streams.checkpoint import Clockwork
from airflow_kstream.model.streams.event import EventKind
from airflow_kstream.model.streams.horizon import WorkerTokens
from airflow_kstream.model.streams.plan import Phase, Stop, Wait
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.policy.events.attention import most_urgent
from airflow_kstream.policy.events.signs import troubles
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers.notifying import signs_of
from airflow_kstream.views.streams import streams_table
from tests.simulated.life import SPEC, Life

WORKS = Clockwork("epoch", "hand", timedelta(minutes=20), timedelta(minutes=1), workers=2)
EXPIRED = "token (HDFS_DELEGATION_TOKEN token 7 for streamer) is expired"
AWAY = "Call From node1/10.0.0.1 to nn1:8020 failed on connection exception: java.net.ConnectException: refused"


class Watched:
    """A stream that has committed, and a watcher who looks each 15 seconds."""

    def __init__(self, life: Life) -> None:
        self.life = life
        life.engine.clock = WORKS
        life.begin()
        life.engine.complete_epoch(SPEC)
        self.watch = Watch(life.run.session, lambda spec: life.engine, again=True)

    def looks(self, minutes: float, clock: Clockwork | None = None) -> Verdict:
        self.life.engine.clock = clock or self.life.engine.clock
        verdict = self.look()
        for _ in range(int(minutes * 4)):
            self.life.clock.ahead += timedelta(seconds=15)
            verdict = self.look()
        return verdict

    def look(self) -> Verdict:
        return dict(self.watch.round([SPEC.name]))[SPEC.name]


@pytest.fixture
def watched(life: Life) -> Watched:
    return Watched(life)


def kinds(verdict: Verdict) -> list[EventKind]:
    return [trouble.kind for trouble in troubles(signs_of(verdict, blind=False))]


def test_a_healthy_job_has_no_trouble(watched: Watched) -> None:
    well = watched.looks(10)
    assert (well.progress.pulse, kinds(well), well.past.environment) == (Pulse.HEALTHY, [], "")


@pytest.mark.parametrize(
    ("refusal", "waits", "environment", "events"),
    [
        ("exit code 1", False, "", [EventKind.STARVING]),
        (AWAY, False, "HDFS", []),
        ("", True, "the queue", []),
    ],
)
def test_a_starving_job_is_its_own_event_or_the_clusters(
    watched: Watched, refusal: str, waits: bool, environment: str, events: list[EventKind]
) -> None:
    starves = replace(WORKS, workers=0, refusal=refusal, waits=waits)
    assert kinds(watched.looks(1.5, starves)) == []
    starved = watched.looks(1)
    assert (starved.progress.pulse, starved.past.environment) == (Pulse.STALLED, environment)
    assert kinds(starved) == events
    again = watched.looks(1, WORKS)
    assert (kinds(again), again.past.environment) == ([], "")


def test_a_dead_token_restarts_a_job_that_worked_while_a_person_sleeps(watched: Watched) -> None:
    starved = watched.looks(2.5, replace(WORKS, workers=0, refusal=EXPIRED))
    assert isinstance(starved.step, Stop)
    assert EXPIRED in starved.why


def test_who_is_woken_for_a_dead_token_looks_until_it_may_restart_the_job(watched: Watched) -> None:
    """It begins to count for itself; settled at its first look, it would be woken again and again, and never act."""
    watched.looks(2.5, replace(WORKS, workers=0, refusal=EXPIRED))
    told: list[str] = []
    report = Reconciler(watched.life.run, told.append).run(Mode.WATCH)
    assert (report.generation, report.phase) == (2, Phase.RUNNING)
    assert any(EXPIRED in line for line in told)


def test_a_dry_run_says_that_a_dead_token_is_waited_for(watched: Watched) -> None:
    watched.looks(2.5, replace(WORKS, workers=0, refusal=EXPIRED))
    _, step = Reconciler(watched.life.run).plan(Mode.WATCH)
    assert isinstance(step, Wait)
    assert EXPIRED in step.why


def test_a_frozen_cluster_keeps_no_task_for_a_dead_token(watched: Watched) -> None:
    watched.looks(2.5, replace(WORKS, workers=0, refusal=EXPIRED))
    FreezeStore(watched.life.run.session).freeze(timedelta(hours=4), "a new NameNode")
    began = watched.life.clock.now()
    assert Reconciler(watched.life.run).run(Mode.WATCH).generation == 1
    assert watched.life.clock.now() - began < timedelta(minutes=1)


def test_who_is_woken_for_a_dead_token_leaves_alone_what_works_again(watched: Watched) -> None:
    watched.looks(2.5, replace(WORKS, workers=0, refusal=EXPIRED))
    watched.life.yarn.at_request = lambda request, about: setattr(watched.life.engine, "clock", WORKS)
    assert Reconciler(watched.life.run).run(Mode.WATCH).generation == 1


def test_a_loss_of_the_replacement_shows_and_needs_nobody(watched: Watched) -> None:
    watched.life.engine.workers = WorkerTokens("hand", renewed=False)
    ahead = watched.looks(1)
    assert ahead.credentials.replacement is not None
    assert kinds(ahead) == []
    (row,) = streams_table({SPEC.name: ahead}).columns[-1].cells
    assert "UTC on a hand that it loses can't be replaced, and it runs on without" in str(row)
    watched.life.clock.ahead += timedelta(days=1)
    watched.life.engine.complete_epoch(SPEC)
    lost = watched.looks(1)
    assert kinds(lost) == [EventKind.NOT_REPLACEABLE]
    assert not isinstance(lost.step, Stop)
    assert most_urgent(kinds(lost)) == ""
    facts = lost.facts.to_json() if lost.facts else {}
    assert facts["horizon"]["replacement"]["until"] is not None
