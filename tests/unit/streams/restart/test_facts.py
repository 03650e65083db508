"""What pages draw of a stream: facts of its newest generation, and the lives of those before."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.checkpoint import Clockwork
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.supervise.streams.look.other_streams import lives_of
from tests.simulated.life import SPEC, Life


@pytest.fixture
def running(life: Life) -> Life:
    """A stream whose first generation committed."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    return life


def test_the_facts_tell_until_when_and_why(running: Life) -> None:
    facts = running.watch().facts
    assert facts is not None
    assert facts.horizon is not None
    assert (facts.generation, facts.tokens.credentials, facts.horizon.reason) == (
        1,
        "ticket",
        HorizonReason.TOKEN_MAX_LIFETIME,
    )
    assert facts.tokens.issued == facts.claim.claimed
    assert facts.tokens.max_lifetime == timedelta(days=7)
    assert facts.tokens.issued is not None
    assert facts.horizon.hard == facts.tokens.issued + facts.tokens.max_lifetime


def test_checkpoints_by_the_clock_have_the_engines_word_and_no_durations(life: Life) -> None:
    life.engine.clock = Clockwork("epoch", "hand", timedelta(minutes=20))
    life.begin()
    life.engine.complete_epoch(SPEC)
    facts = life.watch().facts
    assert facts is not None
    [progress] = facts.progress
    assert (progress.unit, progress.batches, progress.stall_after) == ("epoch", (), timedelta(minutes=20))
    assert progress.committed >= 0


def test_the_facts_name_the_processes_of_its_engine(running: Life) -> None:
    facts = running.watch().facts
    assert facts is not None
    assert facts.to_json()["processes"] == "foreman and hands"


def test_the_facts_tell_what_a_person_wants(running: Life) -> None:
    running.set_desired(DesiredState.HELD)
    facts = running.watch().facts
    assert facts is not None
    assert (facts.desired.state, facts.desired.reason) == (DesiredState.HELD, "the test says so")


def test_a_restart_can_come_from_the_end_of_a_hold_on_and_is_not_overdue_before(running: Life) -> None:
    running.set_desired(DesiredState.HELD)
    running.clock.ahead += timedelta(days=6)
    assert running.watch().credentials.plan_in is None
    running.set_desired(DesiredState.RUNNING)
    left = running.watch().credentials.plan_in
    assert left is not None
    assert -timedelta(minutes=1) < left <= timedelta()


def test_a_look_without_a_conclusion_has_no_facts(running: Life) -> None:
    running.hdfs.at_request = refused
    assert running.watch().facts is None


def test_each_generation_lived_until_its_successor_and_says_why(running: Life) -> None:
    running.request_restart()
    running.reconcile()
    first, second = lives_of(running.run.session, running.run.id)
    assert (first.generation, first.ended, first.planned) == (1, second.began, True)
    assert first.end.endswith("requested a restart: a new jar")
    assert (second.ended, second.end) == (None, "")


def test_a_folder_that_can_not_be_read_has_no_lives(running: Life) -> None:
    running.hdfs.at_request = refused
    assert lives_of(running.run.session, running.run.id) == ()


def refused(request: str, path: str) -> None:
    if request == "list":
        raise Denied("it may not be listed", tried=f"list {path}")
