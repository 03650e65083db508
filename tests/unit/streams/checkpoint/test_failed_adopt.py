"""A job is taken over by hand, and the command fails half-way: nothing may start beside the job meanwhile.

The servers are simulated, because the command is interrupted before each of its requests in turn.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, Unavailable
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.look.observe import observe
from tests.simulated.interrupted import Interrupted, hdfs, newest, subject, supervise
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

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
    bring_back = hdfs.kept()
    hdfs.asked = 0
    adopt(life.run, theirs.id)
    for at in range(1, hdfs.asked + 1):
        bring_back()
        hdfs.asked, hdfs.at, hdfs.happens = 0, at, fails
        with suppress(KstreamError):
            adopt(life.run, theirs.id)
        hdfs.at = 0
        with suppress(Conflict):
            supervise(life.run)
        assert others(life, theirs) == [], f"the adopt failed at its request {at}"
        with suppress(Conflict):
            adopt(life.run, theirs.id)
        assert supervise(life.run).job.application == theirs.id, "and the command can be repeated"


@pytest.fixture
def half_adopted(life: Life, hdfs: Interrupted) -> Application:
    """A job whose checkpoint has got its owner, and no claim."""
    theirs = by_hand(life)
    adopt_half(life, hdfs, theirs)
    assert newest(life.run)
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
    life.yarn.end(str(supervise(life.run).job.application))
    life.run = subject(life, MOVED)
    theirs = by_hand(life)
    adopt_half(life, hdfs, theirs)
    with pytest.raises(Conflict, match="a job was being adopted for it"):
        supervise(life.run)
    assert others(life, theirs) == []
    life.yarn.end(theirs.id)
    take_over(life.run, "it is gone", tell=lambda line: None)
    assert supervise(life.run).generation == 2


def of_an_earlier_format(life: Life, hdfs: Interrupted) -> Application:
    """Let the stream's second generation run, with the claims that an earlier version of this program made."""
    supervise(life.run)
    life.engine.complete_epoch(SPEC)
    life.request_restart()
    assert supervise(life.run).generation == 2
    for number in (1, 2):
        claim = f"{life.run.id.folder}/{claim_file(number)}"
        hdfs.write(claim, json.dumps(json.loads(hdfs.read(claim)) | {"version": 2}), overwrite=True)
    return life.yarn.apps["application_1_0002"]


def test_what_runs_under_a_claim_of_an_earlier_format_keeps_its_number(life: Life, hdfs: Interrupted) -> None:
    running = of_an_earlier_format(life, hdfs)
    assert "which is not read; `kstream streams adopt`" in supervise(life.run).why
    assert adopt(life.run, running.id).generation == 2
    report = supervise(life.run)
    assert (report.phase, report.job.application, report.generation) == (Phase.RUNNING, running.id, 2)
    life.request_restart()
    assert supervise(life.run).generation == 3


def test_a_failed_adopt_from_an_earlier_format_can_be_repeated(life: Life, hdfs: Interrupted) -> None:
    """Between the old claim that makes way and the new one, the running generation has none."""
    running = of_an_earlier_format(life, hdfs)
    bring_back = hdfs.kept()
    hdfs.asked = 0
    adopt(life.run, running.id)
    without_claim = 0
    for at in range(1, hdfs.asked + 1):
        bring_back()
        hdfs.asked, hdfs.at, hdfs.happens = 0, at, fails
        with suppress(KstreamError):
            adopt(life.run, running.id)
        hdfs.at = 0
        without_claim += claim_file(2) not in life.run.folder.names()
        with suppress(Conflict):
            supervise(life.run)
        assert others(life, running) == [], f"the adopt failed at its request {at}"
        with suppress(Conflict):
            adopt(life.run, running.id)
        report = supervise(life.run)
        assert (report.job.application, report.generation) == (running.id, 2), f"it failed at its request {at}"
    assert without_claim, "the moment without a claim is among them"


WORD = f"{CLUSTER.state_dir}/declared.streamer"


def words(hdfs: Interrupted) -> list[str]:
    return [name for name in hdfs.files if name.startswith(WORD) and "/adopted." in name]


class TestAnotherUsersJob:
    """A person says that a job is the stream's although it runs as another user."""

    def test_the_word_is_a_supervisors_file(self, life: Life, hdfs: Interrupted) -> None:
        theirs = life.yarn.start(frozenset({"by-hand"}), user="alice")
        adopt(life.run, theirs.id, of_user="alice")
        assert words(hdfs) == [f"{WORD}/{life.run.id}/adopted.{theirs.id}.alice"]
        assert supervise(subject(life, SPEC)).job.application == theirs.id

    def test_who_is_no_supervisor_may_not_say_it(self, life: Life, hdfs: Interrupted) -> None:
        theirs = life.yarn.start(frozenset({"by-hand"}), user="bob")
        hdfs.modes[CLUSTER.state_dir] = "1777"
        with hdfs.as_user("alice"):
            run = subject(life, SPEC)
            with pytest.raises(Denied, match="only hdfs, streamer may give a stream of /kstream an application of"):
                adopt(run, theirs.id, of_user="bob")
            assert run.folder.names() == frozenset()
            assert newest(run) is None

    def test_a_claim_alone_makes_no_job_of_another_user_the_streams(self, life: Life, hdfs: Interrupted) -> None:
        theirs = life.yarn.start(frozenset({"by-hand"}), user="alice")
        adopt(life.run, theirs.id, of_user="alice")
        hdfs.delete(words(hdfs)[0])
        observation = observe(subject(life, SPEC))
        assert (observation.current, observation.yarn.strangers) == (None, (theirs,))

    def test_a_word_about_the_streams_own_job_is_not_kept(self, life: Life, hdfs: Interrupted) -> None:
        adopt(life.run, life.yarn.start(frozenset({"by-hand"})).id, of_user="alice")
        assert words(hdfs) == []

    def test_a_failed_adopt_lets_nothing_start_beside_the_job(self, life: Life, hdfs: Interrupted) -> None:
        life.engine.complete_epoch(SPEC)
        theirs = life.yarn.start(frozenset({"by-hand"}), user="alice")
        bring_back = hdfs.kept()
        hdfs.asked = 0
        adopt(life.run, theirs.id, of_user="alice")
        for at in range(1, hdfs.asked + 1):
            bring_back()
            hdfs.asked, hdfs.at, hdfs.happens = 0, at, fails
            life.run = subject(life, SPEC)
            with suppress(KstreamError):
                adopt(life.run, theirs.id, of_user="alice")
            hdfs.at = 0
            with suppress(Conflict):
                supervise(life.run)
            assert others(life, theirs) == [], f"the adopt failed at its request {at}"
            with suppress(Conflict):
                adopt(life.run, theirs.id, of_user="alice")
            assert supervise(life.run).job.application == theirs.id, f"and the command can be repeated ({at})"
