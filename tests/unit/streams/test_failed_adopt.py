"""A job is taken over by hand, and the command fails half-way: nothing may start beside the job meanwhile.

The servers are simulated, because the command is interrupted before each of its requests in turn.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from airflow_kstream.model.application import Application
from airflow_kstream.model.errors import Conflict, KstreamError, Unavailable
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.plan import Phase
from airflow_kstream.supervise.streams.adopt import adopt
from airflow_kstream.supervise.streams.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.take_over import take_over
from tests.simulated.interrupted import HERE, Interrupted, hdfs, subject, supervise
from tests.simulated.life import SPEC, Life

__all__ = ["hdfs"]

MOVED = replace(SPEC, checkpoints=("/data/new/checkpoint",))


def fails() -> None:
    raise Unavailable("no NameNode is active")


def adopt_half(life: Life, hdfs: Interrupted, theirs: Application) -> None:
    """Adopt this job, and fail after its checkpoint has got its owner."""

    def away(request: str, path: str) -> None:
        if "/.claim-" in path:
            fails()

    hdfs.at_request = away
    with pytest.raises(Unavailable):
        adopt(life.run, theirs.id)
    hdfs.at_request = lambda request, path: None


def by_hand(life: Life) -> Application:
    """Start a job that carries no tags of ours, has written its checkpoint, and gets no input now."""
    life.engine.complete_epoch(life.run.spec)
    return life.yarn.start(frozenset({"by-hand"}))


def others(life: Life, theirs: Application) -> list[str]:
    return [app.id for app in life.yarn.apps.values() if app.alive and app.id != theirs.id]


def test_an_adopt_that_fails_at_any_request_lets_nothing_start_beside_the_job(life: Life, hdfs: Interrupted) -> None:
    theirs = by_hand(life)
    before = dict(hdfs.files)
    hdfs.asked = 0
    adopt(life.run, theirs.id)
    for at in range(1, hdfs.asked + 1):
        hdfs.files, hdfs.asked, hdfs.at, hdfs.happens = dict(before), 0, at, fails
        with suppress(KstreamError):
            adopt(life.run, theirs.id)
        hdfs.at = 0
        with suppress(Conflict):
            supervise(life.run)
        assert others(life, theirs) == [], f"the adopt failed at its request {at}"
        with suppress(Conflict):
            adopt(life.run, theirs.id)
        assert supervise(life.run).application == theirs.id, "and the command can be repeated"


@pytest.fixture
def half_adopted(life: Life, hdfs: Interrupted) -> Application:
    """A job whose checkpoint has got its owner, and no claim."""
    theirs = by_hand(life)
    adopt_half(life, hdfs, theirs)
    assert CheckpointLock(life.run.session.hdfs, HERE).newest()
    return theirs


def test_the_refusal_says_how_to_go_on(life: Life, half_adopted: Application) -> None:
    with pytest.raises(Conflict, match=r"a job was being adopted for it.*`kstream streams adopt .*take-over"):
        supervise(life.run)


def test_a_job_that_has_ended_meanwhile_is_followed_after_a_take_over(life: Life, half_adopted: Application) -> None:
    life.yarn.end(half_adopted.id)
    take_over(life.run, "it is gone", tell=lambda line: None)
    assert supervise(life.run).generation == 1


def test_a_stop_and_a_start_are_no_word_about_the_job(life: Life, half_adopted: Application) -> None:
    life.set_desired(DesiredState.STOPPED)
    assert supervise(life.run).phase is Phase.STOPPED
    life.set_desired(DesiredState.RUNNING)
    with pytest.raises(Conflict, match="a job was being adopted for it"):
        supervise(life.run)
    assert others(life, half_adopted) == []


def test_an_older_claim_of_the_stream_does_not_finish_it(life: Life, hdfs: Interrupted) -> None:
    """The stream has run before, elsewhere, and its declaration now names the checkpoint of a job by hand."""
    life.yarn.end(str(supervise(life.run).application))
    life.run = subject(life, MOVED)
    theirs = by_hand(life)
    adopt_half(life, hdfs, theirs)
    with pytest.raises(Conflict, match="a job was being adopted for it"):
        supervise(life.run)
    assert others(life, theirs) == []
    life.yarn.end(theirs.id)
    take_over(life.run, "it is gone", tell=lambda line: None)
    assert supervise(life.run).generation == 2
