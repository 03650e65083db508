"""A process that claimed goes on with its claim: no ten minutes of nothing for a reply that was lost.

The servers are simulated, because what is tested happens between two of their replies.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.application import Application
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, SubmissionFailed, Unavailable
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.plan import Phase, Report
from airflow_kstream.model.submission import Submission, SubmitOutcome
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.brake import Brake
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, SimHdfs, SimYarn

SOON = timedelta(minutes=2)
DIED_EARLY, TOOK_TOO_LONG = SubmitOutcome(1, "no queue"), SubmitOutcome(None, "connecting")


@dataclass
class Faulty(SimHdfs):
    """`fault` sees each request before it is answered, and can raise."""

    fault: Callable[[str, str], None] = lambda request, path: None

    def status(self, path: str) -> FileStatus:
        self.fault("status", path)
        return super().status(path)

    def list(self, path: str) -> tuple[FileStatus, ...]:
        self.fault("list", path)
        return super().list(path)

    def read(self, path: str) -> str:
        self.fault("read", path)
        return super().read(path)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.fault("delete", path)
        return super().delete(path, recursive=recursive)


@dataclass
class Client(FakeEngine):
    """A client that ends as told: `ends` says how, and whether its application appears before, or later."""

    ends: list[SubmitOutcome | BaseException] = field(default_factory=list)
    submits: bool = False

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        if not self.ends:
            return super().submit(submission, cluster, ticket_cache, folder, timeout)
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        if self.submits:
            super().submit(submission, cluster, ticket_cache, folder, timeout)
        return end


class Supervised:
    """The stream, its supervisor, and what happens at which request."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.hdfs = Faulty(life.clock)
        self.client = Client(self.hdfs, life.yarn)
        life.use(self.hdfs, self.client)
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
            if any("/gen-000001" in name for name in self.hdfs.files):
                seen += 1
                if seen == number:
                    raise Unavailable("the reply was lost")

        self.hdfs.fault = lose


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


def test_somebody_elses_claim_is_still_waited_for(supervised: Supervised) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    report = Reconciler(supervised.life.run, tell=lambda line: None).run(Mode.ENSURE)
    assert supervised.took > SPEC.submit.ttl
    assert (report.generation, len(supervised.alive)) == (2, 1)


def test_a_kdc_that_is_away_for_a_minute_costs_that_minute(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes away after the old generation was stopped. Nothing is claimed before there is a ticket."""
    supervised.reconcile()
    supervised.life.request_restart()
    back = supervised.life.hdfs.now() + timedelta(minutes=1)

    def acquire(*of: object) -> timedelta:
        if supervised.alive:
            return timedelta(hours=10)
        assert "gen-000002" not in supervised.names
        if supervised.life.hdfs.now() < back:
            raise Unavailable("Cannot contact any KDC")
        return timedelta(hours=10)

    monkeypatch.setattr(tickets, "acquire", acquire)
    assert supervised.reconcile().generation == 2
    assert supervised.life.hdfs.now() < back + SOON


@pytest.mark.parametrize("word", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_word_that_comes_while_the_clients_ticket_is_awaited_leaves_no_claim(
    supervised: Supervised, word: DesiredState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After preflight: a KDC that hardly answers takes minutes for each ticket."""
    asked: list[object] = []

    def acquire(*of: object) -> timedelta:
        asked.append(of)
        if len(asked) == 2:
            supervised.life.set_desired(word)
        return timedelta(hours=10)

    monkeypatch.setattr(tickets, "acquire", acquire)
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
            supervised.hdfs.fault = lambda request, path: None
            raise Unavailable("no NameNode is active")

    supervised.hdfs.fault = away_once
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
            supervised.hdfs.fault = lambda request, path: None
            supervised.life.yarn.start(frozenset(supervised.life.run.id.tags(1)))

    supervised.hdfs.fault = arrives
    with pytest.raises(SubmissionFailed):
        supervised.reconcile()
    assert supervised.alive == []
    report = supervised.reconcile()
    assert (report.generation, len(supervised.alive)) == (2, 1)


@pytest.mark.parametrize("submitted", [True, False])
def test_a_resourcemanager_that_goes_away_after_the_client_is_asked_again(
    supervised: Supervised, submitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised.client.ends, supervised.client.submits = [DIED_EARLY], submitted
    back = supervised.life.hdfs.now() + timedelta(minutes=1)
    listed = SimYarn.applications

    def applications(yarn: SimYarn, tag: str) -> tuple[Application, ...]:
        if not supervised.client.ends and supervised.life.hdfs.now() < back:
            raise Unavailable("none is active")
        return listed(yarn, tag)

    monkeypatch.setattr(SimYarn, "applications", applications)
    if submitted:
        assert "submitted generation 1" in str(supervised.reconcile().done)
    else:
        with pytest.raises(SubmissionFailed, match="ended with 1 and left no application"):
            supervised.reconcile()
    assert supervised.life.hdfs.now() < back + SOON
    assert len(supervised.alive) == submitted


@pytest.mark.parametrize("word", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_word_between_claim_and_submission_gives_the_claim_up(supervised: Supervised, word: DesiredState) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    supervised.life.set_desired(word)
    assert supervised.reconcile().phase in {Phase.HELD, Phase.STOPPED}
    assert (supervised.alive, supervised.fences()) == ([], [])
    supervised.life.set_desired(DesiredState.RUNNING)
    assert supervised.reconcile().generation == 2
    assert supervised.took < SOON


def freeze(supervised: Supervised) -> None:
    Brake(supervised.life.run.session.hdfs, CLUSTER.state_dir).freeze(timedelta(hours=1), "maintenance")


def in_the_end(supervised: Supervised) -> Report:
    Brake(supervised.life.run.session.hdfs, CLUSTER.state_dir).lift("over")
    supervised.life.set_desired(DesiredState.RUNNING)
    return supervised.reconcile()


WORDS: dict[str, Callable[[Supervised], None]] = {
    "hold": lambda supervised: supervised.life.set_desired(DesiredState.HELD),
    "stop": lambda supervised: supervised.life.set_desired(DesiredState.STOPPED),
    "freeze": freeze,
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_while_a_found_claim_waits_for_its_ticket_is_heard(
    supervised: Supervised, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow KDC takes minutes."""
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)

    said: list[str] = []

    def acquire(*of: object) -> timedelta:
        if not said:
            said.append(word)
            WORDS[word](supervised)
        return timedelta(hours=10)

    monkeypatch.setattr(tickets, "acquire", acquire)
    report = supervised.reconcile()
    assert supervised.alive == [], report
    assert report.phase in {Phase.HELD, Phase.STOPPED, Phase.FROZEN}
    assert len(supervised.fences()) == (word == "freeze"), "a freeze changes nothing"
    assert in_the_end(supervised).phase is Phase.RUNNING
    assert len(supervised.alive) == 1


def test_a_claim_that_a_freeze_found_unsubmitted_is_given_up_after_it(
    supervised: Supervised,
) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    freeze(supervised)
    assert supervised.reconcile().phase is Phase.FROZEN
    assert len(supervised.fences()) == 1
    supervised.supervisor = Reconciler(supervised.life.run, tell=lambda line: None)
    assert in_the_end(supervised).generation == 2
    assert len(supervised.alive) == 1


def test_a_freeze_that_comes_before_a_held_claim_is_given_up_keeps_it(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    supervised.life.set_desired(DesiredState.HELD)
    take_fence = StreamRun.take_fence

    def frozen_before(run: StreamRun, fence: str) -> bool:
        freeze(supervised)
        return take_fence(run, fence)

    monkeypatch.setattr(StreamRun, "take_fence", frozen_before)
    report = supervised.reconcile()
    assert (report.phase, len(supervised.fences())) == (Phase.HELD, 1)
    assert not report.done, "nothing was given up"


@pytest.mark.parametrize("end", [SubmissionFailed("it can't be started"), DIED_EARLY])
def test_a_submission_that_fails_during_a_freeze_changes_nothing(
    supervised: Supervised, end: SubmitOutcome | KstreamError, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = supervised.client.submit
    supervised.client.ends = [end]

    def frozen_meanwhile(*of: Any) -> SubmitOutcome:
        monkeypatch.setattr(supervised.client, "submit", submit)
        freeze(supervised)
        return submit(*of)

    monkeypatch.setattr(supervised.client, "submit", frozen_meanwhile)
    with pytest.raises(SubmissionFailed):
        supervised.reconcile()
    assert len(supervised.fences()) == 1
    assert in_the_end(supervised).phase is Phase.RUNNING
    assert len(supervised.alive) == 1


def test_a_claim_that_somebody_else_gave_up_is_not_submitted(supervised: Supervised) -> None:
    """The claimer slept for an hour."""
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    supervised.life.clock.ahead += timedelta(hours=1)
    assert Reconciler(supervised.life.run, tell=lambda line: None).run(Mode.ENSURE).generation == 2
    report = supervised.reconcile()
    assert (report.generation, len(supervised.alive)) == (2, 1)


def test_a_ticket_that_is_refused_after_a_lost_reply_gives_the_claim_up(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)

    def refused(*of: object) -> timedelta:
        raise CredentialError("Client's entry has expired")

    monkeypatch.setattr(tickets, "acquire", refused)
    with pytest.raises(CredentialError):
        supervised.reconcile()
    assert supervised.fences() == []


def test_a_claim_whose_fence_somebody_took_is_followed_and_not_submitted(supervised: Supervised) -> None:
    """Whoever gave it up has not claimed the next generation yet."""
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    supervised.life.run.folder.take_fence(*supervised.fences())
    report = supervised.reconcile()
    assert (report.generation, len(supervised.life.yarn.apps)) == (2, 1)
    assert supervised.took < SOON


@pytest.mark.parametrize("error", [Unavailable("Cannot contact any KDC"), KeyboardInterrupt()])
def test_a_process_that_ends_before_it_submitted_leaves_nothing_to_wait_for(
    supervised: Supervised, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The KDC is away for longer than anybody waits, or a person ends the command."""
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    assert len(supervised.fences()) == 1

    def no_ticket(*of: object) -> timedelta:
        supervised.life.clock.ahead += SPEC.heartbeat.start_timeout
        raise error

    monkeypatch.setattr(tickets, "acquire", no_ticket)
    monkeypatch.setattr(time, "monotonic", lambda: supervised.took.total_seconds())
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


def test_short_outages_do_not_restart_a_wait(supervised: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ResourceManager that is away for half a minute every eight, a wait of ten, and a task that has no patience."""
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    listed = SimYarn.applications

    def applications(yarn: SimYarn, tag: str) -> tuple[Application, ...]:
        if supervised.took.total_seconds() % 480 < 30:
            raise Unavailable("none is active")
        return listed(yarn, tag)

    monkeypatch.setattr(SimYarn, "applications", applications)
    while not supervised.alive and supervised.took < timedelta(hours=2):
        supervised.life.clock.ahead += timedelta(minutes=1)
        with suppress(Unavailable):
            Reconciler(supervised.life.run, tell=lambda line: None, patient=False).run(Mode.ENSURE)
    assert len(supervised.alive) == 1
    assert supervised.took < 2 * SPEC.submit.ttl


def test_a_wait_without_a_server_holds_a_task_for_a_minute(
    supervised: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised.lose_a_reply_after_the_claim(1)
    with pytest.raises(Unavailable):
        supervised.supervisor._advance(Mode.ENSURE)
    away = supervised.took + timedelta(minutes=1)
    listed = SimYarn.applications

    def applications(yarn: SimYarn, tag: str) -> tuple[Application, ...]:
        if supervised.took > away:
            raise Unavailable("none is active")
        return listed(yarn, tag)

    monkeypatch.setattr(SimYarn, "applications", applications)
    with pytest.raises(Unavailable):
        Reconciler(supervised.life.run, tell=lambda line: None, patient=False).run(Mode.ENSURE)
    assert supervised.took - away < timedelta(seconds=70)
