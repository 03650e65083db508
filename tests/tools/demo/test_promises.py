"""The demonstration's promises break when they should."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.demo import promises
from airflow_kstream.demo.history import History, Life, Loss
from airflow_kstream.model.clusters.application import ApplicationState
from tests.simulated.yarn import START, TICKET_SPEC, application

LIFE = timedelta(minutes=3)
EXACT = {"expected": 10, "found": 10, "repeated": 0, "missing": 0, "duplicated": 0, "altered": 0, "unexpected": 0}


def lives(*deaths: int | None) -> History:
    """Return generations one minute apart, each dead so many seconds after its issue; None means alive."""
    history = History(TICKET_SPEC)
    for number, death in enumerate(deaths, 1):
        issued = START + timedelta(minutes=number)
        died = None if death is None else issued + timedelta(seconds=death)
        life = Life(number, issued, issued + LIFE, issued + LIFE / 2, f"application_1_{number}", True, issued, died)
        history.lives[number] = life
    return history


def test_each_generation_must_be_dead_before_its_horizon() -> None:
    assert promises.restarted_in_time(lives(100, 100, None), at_least=2).kept
    assert not promises.restarted_in_time(lives(100, 181, None), at_least=2).kept


def test_only_a_living_older_generation_breaks_the_promise() -> None:
    assert not promises.restarted_in_time(lives(100, None, 100, None), at_least=2).kept
    history = lives(100, None, 100, None)
    history.lives[2].application = None
    assert promises.restarted_in_time(history, at_least=2).kept


def test_too_few_restarts_or_no_last_commit_break_the_promise() -> None:
    assert not promises.restarted_in_time(lives(100, None), at_least=2).kept
    history = lives(100, 100, None)
    history.lives[3].first_commit = None
    assert not promises.restarted_in_time(history, at_least=2).kept


def test_a_stream_with_a_keytab_must_live_on_in_its_first_generation() -> None:
    later = START + timedelta(minutes=1) + 3 * LIFE + timedelta(seconds=1)
    assert promises.lived_through(lives(None), later, 3, LIFE).kept
    assert not promises.lived_through(lives(None), later - timedelta(seconds=2), 3, LIFE).kept
    assert not promises.lived_through(lives(100, None), later, 3, LIFE).kept


DEAD_TOKEN = (
    "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.security.token.SecretManager$InvalidToken): "
    "token (HDFS_DELEGATION_TOKEN token 3 for streamer) can't be found in cache"
)


def test_the_control_must_die_of_its_token_and_nothing_else() -> None:
    dead = application(1, ApplicationState.FAILED, diagnostics=DEAD_TOKEN)
    assert promises.died_of_its_token(dead).kept
    assert not promises.died_of_its_token(replace(dead, diagnostics="ran out of memory")).kept
    assert not promises.died_of_its_token(replace(dead, state=ApplicationState.RUNNING)).kept


def test_the_control_of_flink_must_run_without_a_taskmanager_for_lack_of_a_token() -> None:
    living = application(1, ApplicationState.RUNNING)
    assert promises.never_worked_again(living, 0, DEAD_TOKEN).kept
    assert not promises.never_worked_again(living, 1, DEAD_TOKEN).kept
    assert not promises.never_worked_again(living, 0, "no resources").kept
    assert not promises.never_worked_again(replace(living, state=ApplicationState.FAILED), 0, DEAD_TOKEN).kept


def test_a_killed_taskmanager_must_have_a_successor_in_the_same_job() -> None:
    history = lives(None)
    at = history.lives[1].issued + LIFE + timedelta(seconds=5)
    loss = Loss(history, "application_1_1", at, 1, works=at + timedelta(seconds=30))
    assert promises.replaced(loss, LIFE).kept
    assert not promises.replaced(replace(loss, works=None), LIFE).kept
    assert not promises.replaced(replace(loss, killed=0), LIFE).kept
    assert not promises.replaced(replace(loss, application="application_1_2"), LIFE).kept
    assert not promises.replaced(loss, 2 * LIFE).kept


def test_a_planted_duplicate_a_gap_and_an_empty_table_are_not_exact() -> None:
    assert promises.table_is_exact("events", EXACT).kept
    assert not promises.table_is_exact("events", EXACT | {"found": 11, "duplicated": 1}).kept
    assert not promises.table_is_exact("events", EXACT | {"found": 9, "missing": 1}).kept
    assert not promises.table_is_exact("events", EXACT | {"expected": 0, "found": 0}).kept


def test_lines_that_were_sent_again_are_counted_and_break_no_promise() -> None:
    again = promises.table_is_exact("events", EXACT | {"found": 12, "repeated": 2})
    assert again.kept
    assert again.seen.endswith("2 sent again")
    assert not promises.table_is_exact("events", EXACT | {"found": 13, "repeated": 2, "duplicated": 1}).kept
