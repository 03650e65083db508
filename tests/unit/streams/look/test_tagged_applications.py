"""Applications of other users that carry a stream's tags: anybody may paste them from a log."""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import Conflict, Unavailable
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import Life

NEVER_CLAIMED = 999_999


def stranger(life: Life, generation: int, *, ended: bool = False) -> Application:
    app = life.yarn.start(frozenset(life.run.id.tags(generation)), user="mallory")
    return life.yarn.end(app.id) if ended else app


def state(life: Life, app: Application) -> ApplicationState:
    return life.yarn.apps[app.id].state


def test_a_stranger_with_the_running_generations_tag_is_reported_and_left_alone(life: Life) -> None:
    ours = life.begin().job.application
    theirs = stranger(life, 1)
    told: list[str] = []
    report = Reconciler(life.run, tell=told.append).run(Mode.ENSURE)
    assert (report.phase, report.job.application, report.generation) == (Phase.RUNNING, ours, 1)
    assert state(life, theirs) is ApplicationState.RUNNING
    assert told == [f"{theirs.id} of user mallory carries this stream's tags and is left alone: it is RUNNING"]
    assert observe(life.run).yarn.strangers == (life.yarn.apps[theirs.id],)
    assert life.watch().application == ours


@pytest.mark.parametrize("ended", [True, False])
def test_a_stranger_of_a_generation_that_was_never_claimed_holds_nothing_up(life: Life, ended: bool) -> None:
    first = life.begin().job.application
    assert first
    theirs = stranger(life, NEVER_CLAIMED, ended=ended)
    before = state(life, theirs)
    life.yarn.end(first, ApplicationState.FAILED)
    report = life.reconcile(Mode.ENSURE)
    assert (report.phase, report.generation) == (Phase.RUNNING, 2)
    assert state(life, theirs) is before


def test_the_first_generation_is_submitted_beside_a_stranger(life: Life) -> None:
    theirs = stranger(life, 1)
    report = life.begin()
    assert report.generation == 1
    assert report.job.application != theirs.id
    assert state(life, theirs) is ApplicationState.RUNNING


def test_a_submission_is_not_found_in_a_strangers_application(life: Life) -> None:
    life.engine.at_submit = lambda: stranger(life, 1)
    report = life.begin()
    assert report.done[-1].what == "submitted generation 1 as application_1_0002"


def test_an_application_without_a_claim_is_ours_if_it_is_our_users(life: Life) -> None:
    life.yarn.start(frozenset(life.run.id.tags(7)))
    assert observe(life.run).generation == 7


@pytest.mark.parametrize("word", ["", "bob"])
def test_another_users_job_is_not_adopted_without_a_word_that_names_the_user(life: Life, word: str) -> None:
    """Nobody would be able to stop it: a stream acts as its own identity, whose jobs follow this one."""
    theirs = life.yarn.start(frozenset({"by-hand"}), user="alice")
    before = set(life.hdfs.files)
    with pytest.raises(Conflict, match=r"it runs as alice, and the stream as streamer.*--of-user alice"):
        adopt(life.run, theirs.id, of_user=word)
    assert set(life.hdfs.files) == before


def test_another_users_job_is_adopted_by_a_word_that_names_the_user(life: Life) -> None:
    theirs = life.yarn.start(frozenset({"by-hand"}), user="alice")
    adopt(life.run, theirs.id, of_user="alice")
    assert life.reconcile().job.application == theirs.id


@pytest.mark.parametrize("name", ["svc_streamer", None])
def test_our_own_job_needs_no_word_to_be_adopted_whatever_yarn_calls_us(life: Life, name: str | None) -> None:
    """An old ResourceManager does not tell its name for us; HDFS's is taken for it."""
    life.yarn.whoami = name
    ours = life.yarn.start(frozenset({"by-hand"}))
    adopt(life.run, ours.id)
    assert life.reconcile().job.application == ours.id


def test_our_application_is_ours_even_if_yarn_and_hdfs_call_us_by_different_names(life: Life) -> None:
    life.yarn.whoami = "svc_streamer"
    ours = life.begin().job.application
    assert life.reconcile().job.application == ours
    assert not observe(life.run).yarn.strangers


class TestAResourceManagerThatDoesNotTellOurName:
    """It is older than that page, so its name for us may be the stranger's."""

    def test_a_stranger_in_place_of_the_newest_generation_is_no_conclusion(self, life: Life) -> None:
        ours = life.begin().job.application
        assert ours
        del life.yarn.apps[ours]
        life.yarn.whoami = None
        stranger(life, 1)
        with pytest.raises(Unavailable, match="runs as mallory, not as the owner of its claim"):
            observe(life.run)

    def test_a_stranger_beside_our_newest_generation_is_a_stranger(self, life: Life) -> None:
        life.begin()
        life.yarn.whoami = None
        stranger(life, 1)
        assert len(observe(life.run).yarn.strangers) == 1

    def test_an_ended_stranger_holds_nothing_up(self, life: Life) -> None:
        ours = life.begin().job.application
        assert ours
        life.yarn.end(ours, ApplicationState.FAILED)
        life.yarn.whoami = None
        stranger(life, NEVER_CLAIMED)
        stranger(life, 1, ended=True)
        assert life.reconcile(Mode.ENSURE).generation == 2


def test_a_stranger_is_never_killed_by_a_stop(life: Life) -> None:
    life.begin()
    theirs = stranger(life, 1)
    life.request_restart()
    assert life.reconcile().generation == 2
    assert state(life, theirs) is ApplicationState.RUNNING
