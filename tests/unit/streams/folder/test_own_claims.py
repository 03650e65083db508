"""A process that claimed goes on with its claim: no ten minutes of nothing for a reply that was lost.

The servers are simulated, because what is tested happens between two of their replies.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, SubmissionFailed, Unavailable
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Report
from airflow_kstream.model.streams.submission import SubmitOutcome
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

SOON = timedelta(minutes=2)
DIED_EARLY, TOOK_TOO_LONG = SubmitOutcome(1, "no queue"), SubmitOutcome(None, "connecting")


class Supervised:
    """The stream, its supervisor, and what happens at which request."""

    def __init__(self, life: Life) -> None:
        self.life, self.hdfs, self.client = life, life.hdfs, life.engine
        self.lines: list[str] = []
        self.supervisor = Reconciler(life.run, tell=self.lines.append)
        self.began = life.hdfs.now()

    def reconcile(self) -> Report:
        return self.supervisor.run(Mode.ENSURE)

    @property
    def took(self) -> timedelta:
        return self.life.hdfs.now() - self.began

    @property
    def alive(self) -> list[Application]:
        return [app for app in self.life.yarn.apps.values() if app.alive]

    @property
    def names(self) -> frozenset[str]:
        return self.life.run.folder.names()

    def fences(self, generation: int = 1) -> list[str]:
        return [name for name in self.names if name.startswith(f"fence-{generation:06d}")]

    def lose_a_reply_after_the_claim(self, number: int) -> None:
        """Lose the reply to this request after the claim stands."""
        seen = 0

        def lose(request: str, path: str) -> None:
            nonlocal seen
            of_the_job = "/fake/" in path
            if not of_the_job and any("/gen-000001" in name for name in self.hdfs.files):
                seen += 1
                if seen == number:
                    raise Unavailable("the reply was lost")

        self.hdfs.at_request = lose

    def let_yarn_be_away_while(self, condition: Callable[[], bool]) -> None:
        def away(request: str, tag: str) -> None:
            if request == "applications" and condition():
                raise Unavailable("none is active")

        self.life.yarn.at_request = away


@pytest.fixture
def supervised(life: Life) -> Supervised:
    return Supervised(life)


@pytest.mark.parametrize("number", range(1, 9))
def test_a_reply_that_is_lost_after_the_claim_costs_one_look(supervised: Supervised, number: int) -> None:
    supervised.lose_a_reply_after_the_claim(number)
    report = supervised.reconcile()
    assert (report.phase, report.generation, len(supervised.alive)) == (Phase.RUNNING, 1, 1)
    assert supervised.took < SOON
    assert sum("submitted generation 1" in action.what for action in report.done) == 1


def claims_and_loses_the_reply(supervised: Supervised) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)


def test_somebody_elses_claim_is_still_waited_for(supervised: Supervised) -> None:
    claims_and_loses_the_reply(supervised)
    report = Reconciler(supervised.life.run, tell=lambda line: None).run(Mode.ENSURE)
    assert supervised.took > SPEC.submit.ttl
    assert (report.generation, len(supervised.alive)) == (2, 1)


def test_a_kdc_that_is_away_for_a_minute_costs_that_minute(supervised: Supervised) -> None:
    """It goes away after the old generation was stopped. Nothing is claimed before there is a ticket."""
    supervised.reconcile()
    supervised.life.request_restart()
    back = supervised.life.hdfs.now() + timedelta(minutes=1)

    def away() -> None:
        if not supervised.alive:
            assert "gen-000002" not in supervised.names
            if supervised.life.hdfs.now() < back:
                raise Unavailable("Cannot contact any KDC")

    supervised.life.kdc.at_request = away
    assert supervised.reconcile().generation == 2
    assert supervised.life.hdfs.now() < back + SOON


@pytest.mark.parametrize("word", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_word_that_comes_while_the_clients_ticket_is_awaited_leaves_no_claim(
    supervised: Supervised, word: DesiredState
) -> None:
    """After preflight: a KDC that hardly answers takes minutes for each ticket."""
    asked: list[int] = []

    def said_at_the_second() -> None:
        asked.append(1)
        if len(asked) == 2:
            supervised.life.set_desired(word)

    supervised.life.kdc.at_request = said_at_the_second
    assert supervised.reconcile().phase in {Phase.HELD, Phase.STOPPED}
    assert "gen-000001" not in supervised.names


@pytest.mark.parametrize("error", [InvalidInput("no such client"), SubmissionFailed("it can't be started")])
def test_a_client_that_never_started_leaves_nothing_to_wait_for(supervised: Supervised, error: KstreamError) -> None:
    supervised.client.ends = [error]
    with pytest.raises(type(error)):
        supervised.reconcile()
    assert supervised.fences() == []
    assert Reconciler(supervised.life.run, tell=lambda line: None).run(Mode.ENSURE).generation == 2
    assert supervised.took < SOON


def test_a_client_that_never_started_while_hdfs_was_away_is_started_again(supervised: Supervised) -> None:
    """The fence could not be taken: the claim is still ours, and nothing was submitted of it."""
    supervised.client.ends = [SubmissionFailed("it can't be started")]

    def away_once(request: str, path: str) -> None:
        if request == "delete" and "/fence-" in path:
            supervised.hdfs.at_request = lambda request, path: None
            raise Unavailable("no NameNode is active")

    supervised.hdfs.at_request = away_once
    report = supervised.reconcile()
    assert (report.generation, len(supervised.alive)) == (1, 1)
    assert supervised.took < SOON


def test_a_client_that_took_too_long_and_submitted_nothing_is_fenced_off_at_once(supervised: Supervised) -> None:
    supervised.client.ends = [TOOK_TOO_LONG]
    with pytest.raises(SubmissionFailed, match=r"(?s)did not end within .*, was ended, and left no.*connecting"):
        supervised.reconcile()
    assert supervised.fences() == []
    assert supervised.took < SOON


@pytest.mark.parametrize("end", [TOOK_TOO_LONG, DIED_EARLY])
def test_a_client_that_ended_badly_after_it_had_submitted_brought_its_generation(
    supervised: Supervised, end: SubmitOutcome
) -> None:
    supervised.client.ends, supervised.client.submits = [end], True
    report = supervised.reconcile()
    assert (report.phase, report.generation, len(supervised.alive)) == (Phase.RUNNING, 1, 1)
    assert len(supervised.fences()) == 1


def test_an_application_that_appears_while_its_fence_is_taken_does_not_live(supervised: Supervised) -> None:
    """It may have started with its fence; without it, it would get no more executors."""
    supervised.client.ends = [TOOK_TOO_LONG]

    def arrives(request: str, path: str) -> None:
        if request == "delete" and "/fence-" in path:
            supervised.hdfs.at_request = lambda request, path: None
            supervised.life.yarn.start(frozenset(supervised.life.run.id.tags(1)))

    supervised.hdfs.at_request = arrives
    with pytest.raises(SubmissionFailed):
        supervised.reconcile()
    assert supervised.alive == []
    report = supervised.reconcile()
    assert (report.generation, len(supervised.alive)) == (2, 1)


@pytest.mark.parametrize("submitted", [True, False])
def test_a_resourcemanager_that_goes_away_after_the_client_is_asked_again(
    supervised: Supervised, submitted: bool
) -> None:
    supervised.client.ends, supervised.client.submits = [DIED_EARLY], submitted
    back = supervised.life.hdfs.now() + timedelta(minutes=1)
    supervised.let_yarn_be_away_while(lambda: not supervised.client.ends and supervised.life.hdfs.now() < back)
    if submitted:
        assert "submitted generation 1" in str(supervised.reconcile().done)
    else:
        with pytest.raises(SubmissionFailed, match="ended with 1 and left no application"):
            supervised.reconcile()
    assert supervised.life.hdfs.now() < back + SOON
    assert len(supervised.alive) == submitted


@pytest.mark.parametrize("word", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_word_between_claim_and_submission_gives_the_claim_up(supervised: Supervised, word: DesiredState) -> None:
    claims_and_loses_the_reply(supervised)
    supervised.life.set_desired(word)
    assert supervised.reconcile().phase in {Phase.HELD, Phase.STOPPED}
    assert (supervised.alive, supervised.fences()) == ([], [])
    supervised.life.set_desired(DesiredState.RUNNING)
    assert supervised.reconcile().generation == 2
    assert supervised.took < SOON


def freeze(supervised: Supervised) -> None:
    FreezeStore(supervised.life.run.session).freeze(timedelta(hours=1), "maintenance")


def in_the_end(supervised: Supervised) -> Report:
    FreezeStore(supervised.life.run.session).lift("over")
    supervised.life.set_desired(DesiredState.RUNNING)
    return supervised.reconcile()


WORDS: dict[str, Callable[[Supervised], None]] = {
    "hold": lambda supervised: supervised.life.set_desired(DesiredState.HELD),
    "stop": lambda supervised: supervised.life.set_desired(DesiredState.STOPPED),
    "freeze": freeze,
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_while_a_found_claim_waits_for_its_ticket_is_heard(supervised: Supervised, word: str) -> None:
    """A slow KDC takes minutes."""
    claims_and_loses_the_reply(supervised)

    def said_once() -> None:
        supervised.life.kdc.at_request = lambda: None
        WORDS[word](supervised)

    supervised.life.kdc.at_request = said_once
    report = supervised.reconcile()
    assert supervised.alive == [], report
    assert report.phase in {Phase.HELD, Phase.STOPPED, Phase.FROZEN}
    assert len(supervised.fences()) == (word == "freeze"), "a freeze changes nothing"
    assert in_the_end(supervised).phase is Phase.RUNNING
    assert len(supervised.alive) == 1


def test_a_claim_that_a_freeze_found_unsubmitted_is_given_up_after_it(
    supervised: Supervised,
) -> None:
    claims_and_loses_the_reply(supervised)
    freeze(supervised)
    assert supervised.reconcile().phase is Phase.FROZEN
    assert len(supervised.fences()) == 1
    supervised.supervisor = Reconciler(supervised.life.run, tell=lambda line: None)
    assert in_the_end(supervised).generation == 2
    assert len(supervised.alive) == 1


def test_a_freeze_that_comes_before_a_held_claim_is_given_up_keeps_it(supervised: Supervised) -> None:
    claims_and_loses_the_reply(supervised)
    supervised.life.set_desired(DesiredState.HELD)
    looks: list[str] = []

    def frozen_after_a_look(request: str, path: str) -> None:
        if (request, path) == ("list", CLUSTER.state_dir):
            looks.append(path)
            if len(looks) == 2:
                freeze(supervised)

    supervised.hdfs.at_request = frozen_after_a_look
    report = supervised.reconcile()
    assert (report.phase, len(supervised.fences())) == (Phase.HELD, 1)
    assert not report.done, "nothing was given up"


@pytest.mark.parametrize("end", [SubmissionFailed("it can't be started"), DIED_EARLY])
def test_a_submission_that_fails_during_a_freeze_changes_nothing(
    supervised: Supervised, end: SubmitOutcome | KstreamError
) -> None:
    supervised.client.ends, supervised.client.at_submit = [end], lambda: freeze(supervised)
    with pytest.raises(SubmissionFailed):
        supervised.reconcile()
    supervised.client.at_submit = lambda: None
    assert len(supervised.fences()) == 1
    assert in_the_end(supervised).phase is Phase.RUNNING
    assert len(supervised.alive) == 1


def test_a_claim_that_somebody_else_gave_up_is_not_submitted(supervised: Supervised) -> None:
    """The claimer slept for an hour."""
    claims_and_loses_the_reply(supervised)
    supervised.life.clock.ahead += timedelta(hours=1)
    assert Reconciler(supervised.life.run, tell=lambda line: None).run(Mode.ENSURE).generation == 2
    report = supervised.reconcile()
    assert (report.generation, len(supervised.alive)) == (2, 1)


@pytest.mark.parametrize("claimed", [False, True])
def test_a_stop_counts_that_is_ordered_while_a_client_waits_for_its_turn(supervised: Supervised, claimed: bool) -> None:
    if claimed:
        claims_and_loses_the_reply(supervised)
    supervised.client.at_turn = lambda: supervised.life.set_desired(DesiredState.STOPPED)
    report = supervised.reconcile()
    assert (report.phase, supervised.life.yarn.apps, supervised.fences()) == (Phase.STOPPED, {}, [])


def test_a_claim_that_is_given_up_while_it_waits_for_its_turn_is_followed(supervised: Supervised) -> None:
    claims_and_loses_the_reply(supervised)

    def give_up() -> None:
        for fence in supervised.fences():
            supervised.life.run.folder.take_fence(fence)

    supervised.client.at_turn = give_up
    report = supervised.reconcile()
    assert (report.generation, len(supervised.life.yarn.apps)) == (2, 1)


def test_a_ticket_that_is_refused_after_a_lost_reply_gives_the_claim_up(supervised: Supervised) -> None:
    claims_and_loses_the_reply(supervised)

    def refused() -> None:
        raise CredentialError("Client's entry has expired")

    supervised.life.kdc.at_request = refused
    with pytest.raises(CredentialError):
        supervised.reconcile()
    assert supervised.fences() == []


def test_a_claim_whose_fence_somebody_took_is_followed_and_not_submitted(supervised: Supervised) -> None:
    """Whoever gave it up has not claimed the next generation yet."""
    claims_and_loses_the_reply(supervised)
    supervised.life.run.folder.take_fence(*supervised.fences())
    report = supervised.reconcile()
    assert (report.generation, len(supervised.life.yarn.apps)) == (2, 1)
    assert supervised.took < SOON


@pytest.mark.parametrize("error", [Unavailable("Cannot contact any KDC"), KeyboardInterrupt()])
def test_a_process_that_ends_before_it_submitted_leaves_nothing_to_wait_for(
    supervised: Supervised, error: BaseException
) -> None:
    """The KDC is away for longer than anybody waits, or a person ends the command."""
    claims_and_loses_the_reply(supervised)
    assert len(supervised.fences()) == 1

    def no_ticket() -> None:
        supervised.life.clock.ahead += SPEC.heartbeat.start_timeout
        raise error

    supervised.life.kdc.at_request = no_ticket
    with pytest.raises(type(error)):
        supervised.reconcile()
    assert supervised.fences() == []


def test_a_process_that_is_ended_while_its_client_runs_keeps_the_fence(supervised: Supervised) -> None:
    """The client may have submitted."""
    supervised.client.ends = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        supervised.reconcile()
    assert len(supervised.fences()) == 1


def test_a_supervisor_without_patience_gives_its_claim_up_with_the_lost_reply(supervised: Supervised) -> None:
    supervised.supervisor.patient = False
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.reconcile()
    assert supervised.fences() == []
    assert supervised.reconcile().generation == 2
    assert supervised.took < SOON


def test_short_outages_do_not_restart_a_wait(supervised: Supervised) -> None:
    """A ResourceManager that is away for half a minute every eight, a wait of ten, and a task that has no patience."""
    claims_and_loses_the_reply(supervised)
    supervised.let_yarn_be_away_while(lambda: supervised.took.total_seconds() % 480 < 30)
    while not supervised.alive and supervised.took < timedelta(hours=2):
        supervised.life.clock.ahead += timedelta(minutes=1)
        with suppress(Unavailable):
            Reconciler(supervised.life.run, tell=lambda line: None, patient=False).run(Mode.ENSURE)
    assert len(supervised.alive) == 1
    assert supervised.took < 2 * SPEC.submit.ttl


def test_a_wait_without_a_server_holds_a_task_for_a_minute(supervised: Supervised) -> None:
    claims_and_loses_the_reply(supervised)
    away = supervised.took + timedelta(minutes=1)
    supervised.let_yarn_be_away_while(lambda: supervised.took >= away)
    with pytest.raises(Unavailable):
        Reconciler(supervised.life.run, tell=lambda line: None, patient=False).run(Mode.ENSURE)
    assert supervised.took - away < timedelta(seconds=70)
