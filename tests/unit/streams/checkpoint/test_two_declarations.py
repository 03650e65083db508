"""Two declarations of one stream are an error that somebody is told, and no duel of restarts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.errors import RestartAborted
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life

BLUE = replace(SPEC, on_change=OnChange.RESTART)
GREEN = replace(BLUE, arguments=("--keytab-of", "green"))


def supervise(life: Life, spec: StreamSpec) -> Report:
    return Reconciler(replace(life.run, spec=spec), tell=lambda line: None).run(Mode.WATCH)


def generations(life: Life) -> int:
    return len(life.yarn.applications(ALL_STREAMS_TAG))


def duel(life: Life, rounds: int = 20) -> list[str]:
    """Let both declarations be reconciled in turn; return the errors."""
    errors = []
    for spec in (BLUE, GREEN) * rounds:
        try:
            supervise(life, spec)
        except RestartAborted as error:
            errors.append(str(error))
        life.clock.ahead += timedelta(seconds=20)
    return errors


def test_a_duel_ends_after_three_generations_and_is_an_error(life: Life) -> None:
    errors = duel(life)
    assert generations(life) == 3
    assert len(errors) == 19
    for words in (
        "the declared spec already ran as generation 2 (claimed by ",
        "and generation 3 (claimed by ",
        "Remove one of its declarations, or make them equal",
        "`kstream streams restart orders` starts the declared one all the same",
        "the current generation keeps running",
    ):
        assert words in errors[0]


def test_restarts_in_between_do_not_hide_a_duel(life: Life) -> None:
    for spec in (BLUE, GREEN, BLUE):
        supervise(life, spec)
        life.request_restart()
        supervise(life, spec)
    with pytest.raises(RestartAborted, match="already ran as generation 4"):
        supervise(life, GREEN)


def test_a_change_and_its_revert_are_carried_out(life: Life) -> None:
    for number, spec in enumerate((BLUE, GREEN, BLUE), start=1):
        assert supervise(life, spec).generation == number
    another = replace(BLUE, arguments=("--faster",))
    assert supervise(life, another).generation == 4


def test_a_persons_word_starts_the_declared_one_all_the_same(life: Life) -> None:
    duel(life)
    life.request_restart()
    assert supervise(life, GREEN).generation == 4


def test_what_was_changed_back_and_forth_long_ago_is_forgotten(life: Life) -> None:
    duel(life)
    life.clock.ahead += timedelta(days=1)
    assert supervise(life, GREEN).generation == 4


def test_a_claim_that_cannot_be_read_is_no_obstacle(life: Life) -> None:
    for spec in (BLUE, GREEN, BLUE):
        supervise(life, spec)
    life.hdfs.write(f"{life.run.id.folder}/gen-000002", "no claim", overwrite=True)
    assert supervise(life, GREEN).generation == 4
