"""Fleets through outages: who comes back when, and who is woken."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.streams.contract import ended_file
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.pulse.blindness import STAGGER
from airflow_kstream.policy.streams.restart.reconcile import Mode
from tests.simulated.ended_lives import BARE, BRISK, FAILED, end, recorded
from tests.simulated.life import Life
from tests.simulated.restarts import HOUR, MINUTE, dark, outage
from tests.simulated.servers import CLUSTER
from tests.simulated.yarn import START

INFRASTRUCTURE = "User class threw exception: java.net.ConnectException: nn"


def test_a_fleet_without_kafka_submits_no_thousand_each_minute_and_is_back_in_five() -> None:
    """A thousand streams, 2.5 hours; each attempt fails after a second, so there are as many as there can be."""
    answers, seen = START + 2.5 * HOUR, Counter[int]()
    for number in range(1000):
        ends = outage(f"stream-{number}", 2.5, timedelta(seconds=1), began=timedelta(milliseconds=number))
        claims = [each.claimed for each in ends[1:]]
        assert next(at for at in claims if at + timedelta(seconds=1) >= answers) <= answers + 5 * MINUTE
        seen.update((at - START) // MINUTE for at in claims)
    attempts = [seen[minute] for minute in range(150)]
    assert sum(attempts[:10]) < 5500
    assert max(attempts[10:]) < 500


def test_no_stream_of_a_dark_cluster_has_two_turns_more_than_another() -> None:
    """By their pauses of a quarter of an hour alone, forty-five streams would take every turn, and the others none."""
    order = [number for _, number in dark([0.0] * 60, 7200)]
    assert order[:60] == list(range(60))
    turns = Counter(order)
    assert len(turns) == 60
    assert max(turns.values()) - min(turns.values()) <= 1
    assert sum(turns.values()) > 6500 / STAGGER, "no turn is left out"


def test_a_restart_that_becomes_due_takes_the_next_turn() -> None:
    """Sixty streams that their watcher does not see take turns; one has no more of them than others until it is due."""
    plan = 4000.0
    turns = [now for now, number in dark([None] * 59 + [plan], 5000, shared=False) if number == 59]
    before, after = [now for now in turns if now < plan], [now for now in turns if now >= plan]
    assert len(before) >= 2
    assert after[0] <= plan + STAGGER


class TestSeveralStreams:
    """Streams of one state_dir, on one simulated HDFS and ResourceManager."""

    @pytest.fixture
    def lives(self, life: Life) -> list[Life]:
        others = [self.beside(life, f"s{number}") for number in range(4)]
        for one in others:
            one.begin()
        return others

    @staticmethod
    def beside(life: Life, name: str) -> Life:
        other = Life()
        other.clock, other.yarn = life.clock, life.yarn
        other.use(life.hdfs)
        other.run = replace(other.run, spec=replace(BRISK, name=name, checkpoints=(f"/data/{name}",)))
        return other

    @staticmethod
    def die(lives: list[Life], diagnostics: str) -> None:
        for application in list(lives[0].yarn.apps):
            if lives[0].yarn.apps[application].alive:
                lives[0].yarn.end(application, FAILED, diagnostics)

    def test_what_ends_several_at_once_is_the_environments(self, lives: list[Life]) -> None:
        self.die(lives, INFRASTRUCTURE)
        for one in lives:
            one.reconcile(Mode.WATCH)
        assert [recorded(one)[0].shared for one in lives] == [False, False, True, True]

    def test_what_ended_several_at_once_is_the_environments_whenever_each_is_seen(self, lives: list[Life]) -> None:
        """Each is looked at in its turn, and a fleet may take long."""
        self.die(lives, INFRASTRUCTURE)
        for one in lives:
            one.reconcile(Mode.WATCH)
            lives[0].clock.ahead += timedelta(minutes=11)
        assert [recorded(one)[0].shared for one in lives] == [False, False, True, True]

    def test_all_come_back_without_a_person_however_long_it_lasts(self, lives: list[Life]) -> None:
        """Kafka is away: nobody's breaker opens, and no task fails for it, the first to end included."""
        phases: list[Phase] = []
        for _ in range(9):
            self.die(lives, INFRASTRUCTURE)
            phases += [one.reconcile(Mode.WATCH).phase for one in lives]
            lives[0].clock.ahead += timedelta(minutes=31)
        assert Phase.ENDED not in phases
        assert all(one.shared for life in lives for one in recorded(life)[1:-1])
        assert [one.reconcile(Mode.WATCH).phase for one in lives] == [Phase.RUNNING] * len(lives)

    def test_two_streams_are_no_environment_however_often_they_end(self, lives: list[Life]) -> None:
        """A stream's own earlier ends are not a company of its later ones."""
        for _ in range(3):
            self.die(lives, INFRASTRUCTURE)
            for one in lives[:2]:
                one.reconcile(Mode.WATCH)
        assert not any(one.shared for life in lives for one in recorded(life))

    @pytest.mark.parametrize(("apart", "diagnostics"), [(11, INFRASTRUCTURE), (0, BARE), (0, "")])
    def test_what_only_looks_alike_is_each_streams_own(self, lives: list[Life], apart: float, diagnostics: str) -> None:
        """Errors at other times, or an exit status: every second job ends with 1."""
        for one, application in zip(lives, list(lives[0].yarn.apps), strict=True):
            one.yarn.end(application, FAILED, diagnostics)
            one.reconcile(Mode.WATCH)
            lives[0].clock.ahead += timedelta(minutes=apart)
        assert not any(one.shared for life in lives for one in recorded(life))

    def test_a_neighbour_that_cannot_be_read_hinders_nobody(self, lives: list[Life]) -> None:
        for one in lives[1:]:
            lives[0].hdfs.write(f"{one.run.id.folder}/{ended_file(9)}", "no JSON")
        self.die(lives, INFRASTRUCTURE)
        assert lives[0].reconcile(Mode.WATCH).generation == 2

    def test_a_fleet_costs_each_stream_a_few_requests(self, life: Life) -> None:
        """Folders that changed lately, and none of them with this error: at most twenty are listed."""
        for number in range(100):
            life.hdfs.write(f"{StreamId(f's{number}', CLUSTER.state_dir).folder}/{ended_file(1)}", "no JSON")
        life.begin()
        end(life, INFRASTRUCTURE)
        asked: list[tuple[str, str]] = []
        life.hdfs.at_request = lambda request, path: asked.append((request, path))
        life.reconcile(Mode.WATCH)
        assert len([path for request, path in asked if request == "list" and path.startswith("/kstream/s")]) == 20
