"""Waits are measured by the supervisor's own clock, from its own looks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.generation import Position
from airflow_kstream.model.streams.looks import SignKind
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from tests.simulated.yarn import CHECKPOINT, START, TICKET_SPEC, SimulatedYarn, application, claim_of


class Watcher:
    """A memory with a clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.memory = SignMemory(lambda: self.seconds)

    def age(self, yarn: SimulatedYarn, kind: SignKind, after: float = 0) -> float:
        self.seconds += after
        return self.memory.look(yarn.look()).age_of(kind).total_seconds()


def ended() -> SimulatedYarn:
    yarn = SimulatedYarn(claims={1: claim_of(TICKET_SPEC, 1, START)})
    yarn.applications = [(1, application(1, ApplicationState.FAILED, finished=START))]
    return yarn


def test_a_first_look_has_seen_nothing_for_any_time() -> None:
    yarn = ended()
    yarn.now += timedelta(days=7)
    assert Watcher().age(yarn, SignKind.ALONE) == 0


def test_the_clocks_of_servers_do_not_count() -> None:
    """A failover to a NameNode that is 40 s ahead, or one that is behind: e10 10d of the review."""
    yarn, watcher = ended(), Watcher()
    watcher.age(yarn, SignKind.QUIET)
    yarn.now += timedelta(seconds=40)
    assert watcher.age(yarn, SignKind.QUIET, after=2) == 2
    yarn.now -= timedelta(minutes=5)
    assert watcher.age(yarn, SignKind.QUIET, after=2) == 4


def test_a_checkpoint_that_moves_is_silent_from_then_on() -> None:
    yarn, watcher = ended(), Watcher()
    watcher.age(yarn, SignKind.QUIET)
    yarn.offsets[0] = START
    assert watcher.age(yarn, SignKind.QUIET, after=20) == 0
    yarn.commits[0] = START
    assert watcher.age(yarn, SignKind.QUIET, after=20) == 0
    assert watcher.age(yarn, SignKind.QUIET, after=20) == 20
    assert watcher.age(yarn, SignKind.ALONE) == 60


def test_an_application_that_shows_up_again_was_not_absent_before() -> None:
    yarn, watcher = SimulatedYarn(claims={1: claim_of(TICKET_SPEC, 1, START)}), Watcher()
    watcher.age(yarn, SignKind.ABSENT)
    assert watcher.age(yarn, SignKind.ABSENT, after=15) == 15
    yarn.applications = [(1, application(1, ApplicationState.RUNNING))]
    watcher.age(yarn, SignKind.ABSENT, after=50)
    yarn.applications = []
    assert watcher.age(yarn, SignKind.ABSENT, after=50) == 0


def test_a_supervisor_that_was_frozen_has_not_watched_meanwhile_and_still_gets_on() -> None:
    yarn, watcher = ended(), Watcher()
    watcher.age(yarn, SignKind.ALONE)
    assert watcher.age(yarn, SignKind.ALONE, after=3600) == 20
    assert watcher.age(yarn, SignKind.ALONE, after=3600) == 40


def test_a_supervisor_that_looks_seldom_gets_on_as_fast_as_one_that_looks_often() -> None:
    yarn, watcher = ended(), Watcher()
    watcher.memory.look_every = timedelta(minutes=5)
    watcher.age(yarn, SignKind.ALONE)
    assert watcher.age(yarn, SignKind.ALONE, after=300) == 300
    assert watcher.age(yarn, SignKind.ALONE, after=3600) == 900


def test_the_furthest_position_is_kept_when_a_checkpoint_is_replaced() -> None:
    yarn, memory = ended(), SignMemory(lambda: 0.0)
    for batch in range(3):
        yarn.offsets[batch] = yarn.commits[batch] = START
        memory.look(yarn.look())
    yarn.offsets, yarn.commits = {0: START}, {0: START}
    assert memory.look(yarn.look()).furthest == {CHECKPOINT: Position("q", 2, 2)}
    other = replace(yarn.look(), checkpoints=(replace(yarn.look().checkpoints[0], query="other"),))
    assert memory.look(other).furthest == {CHECKPOINT: Position("q", 2, 2)}


def test_a_new_generation_inherits_no_position_of_its_predecessors() -> None:
    """A person may have let it start from an older one."""
    yarn, watcher = ended(), Watcher()
    yarn.offsets = yarn.commits = dict.fromkeys(range(800), START)
    watcher.age(yarn, SignKind.QUIET)
    yarn.claims[2] = claim_of(TICKET_SPEC, 2, START)
    yarn.offsets = yarn.commits = dict.fromkeys(range(300), START)
    watcher.age(yarn, SignKind.QUIET)
    assert watcher.memory.furthest == {CHECKPOINT: Position("q", 299, 299)}
