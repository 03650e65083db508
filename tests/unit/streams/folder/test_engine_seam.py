"""Another engine than Spark lives a stream's whole life through the same reconcile and the same watch."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Conflict, InvalidInput, RestartAborted, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import FreshToken
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, DelegationToken
from airflow_kstream.model.streams.contract import applied_marker, pushes, started_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import LaunchToken
from airflow_kstream.model.streams.plan import Note, Phase, Push, Report, Settled, Stop
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.model.streams.submission import SubmitOutcome
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.pulse.evidence import take_evidence
from airflow_kstream.supervise.streams.restart import token_pushes
from airflow_kstream.supervise.streams.restart.dry_run import explained
from airflow_kstream.views.streams import evidence_lines
from tests.simulated.engine import HANGS
from tests.simulated.hadoop_writers import writable
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, ONE_DAY, ONE_WEEK

# The part of a fake job that takes tokens is a script.
REFRESHED = replace(SPEC, application="/jobs/orders.py", credentials=TicketCredentials(refresh=True))
DUMPS = [f"threads-{number}.txt" for number in (1, 2, 3)]


def done(report: Report) -> str:
    return "; ".join(action.what for action in report.done)


def test_a_stream_of_another_engine_is_submitted_once_and_found_again(life: Life) -> None:
    first = life.begin()
    assert (first.phase, first.generation) == (Phase.RUNNING, 1)
    again = life.begin()
    assert (again.job.application, again.done) == (first.job.application, ())
    assert life.engine.calls == ["checked the host", f"submitted {first.job.application}"]


def test_its_heartbeat_is_read_from_its_own_progress(life: Life) -> None:
    report = life.begin()
    assert report.heartbeat is not None
    assert report.heartbeat.pulse is Pulse.STARTING
    life.engine.complete_epoch(SPEC)
    report = life.reconcile()
    assert report.heartbeat is not None
    assert report.heartbeat.pulse is Pulse.HEALTHY


def test_a_restart_before_the_horizon_takes_a_savepoint_and_leaves_nothing_behind(life: Life) -> None:
    first = life.begin()
    assert first.horizon is not None
    assert first.horizon.hard is not None
    life.engine.complete_epoch(SPEC)
    life.clock.ahead += 0.8 * ONE_WEEK
    second = life.reconcile()
    assert (second.phase, second.generation) == (Phase.RUNNING, 2)
    assert "it stopped with a savepoint" in done(second)
    assert f"deleted /tmp/fake/{first.job.application}" in done(second)
    assert life.hdfs.now() < first.horizon.hard
    assert not any(name.startswith(f"/tmp/fake/{first.job.application}") for name in life.hdfs.files)


def test_a_requested_restart_happens_once(life: Life) -> None:
    life.begin()
    life.request_restart()
    assert life.reconcile().generation == 2
    assert life.reconcile().generation == 2


def test_a_job_that_ends_by_itself_is_reported_and_started_by_the_next_ensure(life: Life) -> None:
    application = life.begin().job.application
    life.yarn.end(str(application))
    assert life.reconcile().phase is Phase.ENDED
    assert life.begin().generation == 2


def test_a_job_that_outlives_its_engines_stop_is_killed(life: Life) -> None:
    life.begin()
    life.engine.ignores_stops = True
    life.set_desired(DesiredState.STOPPED)
    report = life.reconcile()
    assert report.phase is Phase.STOPPED
    assert "it was killed" in done(report)


def test_a_stopped_stream_leaves_its_claims_and_its_progress_and_no_more(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    folders = {name.split("/")[1] for name in life.hdfs.files}
    assert folders == {"kstream", "data"}


def test_somebody_elses_application_is_adopted_whatever_its_engine(life: Life) -> None:
    theirs = life.yarn.start(frozenset({"by-hand"}))
    adopt(life.run, theirs.id)
    report = life.begin()
    assert (report.phase, report.job.application, report.done) == (Phase.RUNNING, theirs.id, ())


def test_nothing_is_adopted_while_a_claimed_application_may_still_arrive(life: Life) -> None:
    life.begin()
    life.yarn.apps.clear()
    theirs = life.yarn.start(frozenset({"by-hand"}))
    life.clock.ahead += timedelta(minutes=4)
    with pytest.raises(Conflict, match=r"may still arrive for another 6m .*submit.ttl.* Retrying may help"):
        adopt(life.run, theirs.id)
    life.clock.ahead += timedelta(minutes=6)
    with pytest.raises(Conflict, match=r"not given up.* `kstream streams stop orders` .* Retrying may help"):
        adopt(life.run, theirs.id)


def test_a_host_without_the_engines_client_watches_and_stops_but_starts_nothing(life: Life) -> None:
    life.begin()
    life.engine.obstacle = "this host has no fake-run"
    assert life.reconcile().phase is Phase.RUNNING
    assert "can't be submitted from here: this host has no fake-run" in str(explained(CLUSTER, SPEC, life.engine))
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    life.set_desired(DesiredState.RUNNING)
    before = life.run.folder.names()
    with pytest.raises(InvalidInput, match="no fake-run"):
        life.begin()
    assert life.run.folder.names() == before, "a claim without an application keeps everybody waiting"


def test_a_forced_restart_waits_for_a_host_that_has_the_client(life: Life) -> None:
    """A forced restart goes ahead regardless of other faults: see the step's `preflight`."""
    application = life.begin().job.application
    life.engine.obstacle = "this host has no fake-run"
    life.clock.ahead += ONE_WEEK - timedelta(minutes=30)
    with pytest.raises(RestartAborted, match="no fake-run"):
        life.reconcile()
    assert life.yarn.application(str(application)).alive
    life.engine.obstacle = ""
    assert life.reconcile().generation == 2


def test_an_aborted_restart_gives_one_advice_and_says_that_the_stream_runs_on(life: Life) -> None:
    application = life.begin().job.application
    life.engine.obstacle = "this host has no fake-run."
    life.request_restart()
    with pytest.raises(RestartAborted) as aborted:
        life.reconcile()
    said = str(aborted.value)
    assert said.endswith(
        "submit orders: this host has no fake-run; the current generation keeps running. Retrying may help."
    )
    assert "Retrying will not help" not in said
    assert life.yarn.application(str(application)).alive


def test_its_watch_reads_its_own_progress_and_calls_for_nothing_while_it_is_well(life: Life) -> None:
    application = life.begin().job.application
    life.engine.complete_epoch(SPEC)
    verdict = life.watch()
    assert (verdict.application, verdict.generation, verdict.progress.verified) == (application, 1, True)
    assert verdict.progress.heartbeat is not None
    assert verdict.progress.heartbeat.pulse is Pulse.HEALTHY
    assert not verdict.calls_for_action


def test_its_watch_calls_for_a_restart_before_the_horizon(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    assert not life.watch().calls_for_action
    life.clock.ahead += 0.8 * ONE_WEEK
    due = life.watch()
    assert due.calls_for_action
    assert isinstance(due.step, Stop)
    assert due.credentials.remaining is not None
    assert timedelta() < due.credentials.remaining < 0.25 * ONE_WEEK
    second = life.reconcile()
    verdict = life.watch()
    assert (verdict.generation, verdict.application) == (2, second.job.application)
    assert not verdict.calls_for_action


def test_its_watch_calls_for_what_a_person_requests(life: Life) -> None:
    life.begin()
    for request in (life.request_restart, lambda: life.set_desired(DesiredState.STOPPED)):
        assert not life.watch().calls_for_action
        request()
        assert isinstance(life.watch().step, Stop)
        life.reconcile()
    stopped = life.watch().step
    assert isinstance(stopped, Settled)
    assert stopped.phase is Phase.STOPPED


def test_its_watch_sees_the_end_of_a_job_that_ends_by_itself(life: Life) -> None:
    life.yarn.end(
        str(life.begin().job.application), ApplicationState.FAILED, "User class threw\n" + "KerberosAuthException " * 99
    )
    verdict = life.watch()
    assert verdict.calls_for_action
    assert isinstance(verdict.step, Note)
    assert "ended by itself: FAILED/FAILED, User class threw KerberosAuthException" in verdict.step.why
    assert len(verdict.step.why) < 400


def test_what_hangs_in_its_jobs_is_kept_in_its_own_words(life: Life) -> None:
    application = life.yarn.application(str(life.begin().job.application))
    life.engine.hangs = (HANGS,)
    told: list[str] = []
    found = take_evidence(life.run, application, 1, told.append)
    assert told == [f"took thread dump {number} of 3 of {application.id}: 1 processes" for number in (1, 2, 3)]
    assert (found.dumped, found.moves, found.missing) == (True, False, ())
    assert "worker 1 on node7, epoch 3: waits for another worker" in list(evidence_lines(found))
    kept = {name: str(text) for name, text in life.hdfs.files.items() if name.startswith(found.folder)}
    assert {name.rpartition("/")[2] for name in kept} == {"summary.txt", "progress.txt", *DUMPS}
    assert not [name for name, text in kept.items() if re.search("spark|driver|executor", text, re.IGNORECASE)]


def test_an_application_that_shows_nothing_leaves_evidence_of_that_alone(life: Life) -> None:
    application = life.yarn.application(str(life.begin().job.application))
    life.engine.shows = Unavailable("its pages are away")
    with pytest.raises(Unavailable, match="its pages are away"):
        take_evidence(life.run, application, 1, lambda line: None)


def test_a_plan_names_the_jobs_that_take_fresh_tokens_in_its_engines_words(life: Life) -> None:
    spec = replace(SPEC, credentials=TicketCredentials(refresh=True), conf={"fake.service": "a vault"})
    shown = str(explained(CLUSTER, spec, life.engine))
    assert "because only fake scripts are served yet" in shown
    assert "its conf names a vault, and the horizon does not count" in shown


class TestTokens:
    """Of a stream of the fake engine whose tokens are refreshed."""

    @pytest.fixture(autouse=True)
    def refreshed(self, life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
        life.run = replace(life.run, spec=REFRESHED)
        self.minted: list[str] = []

        def mint(issuer: str, cluster: Cluster, identity: Identity) -> FreshToken:
            self.minted.append(issuer)
            now = life.clock.now()
            token = DelegationToken(identity.principal, "yarn", "", now, now + ONE_WEEK, len(self.minted), 1)
            return FreshToken(issuer, issuer, writable(token), SecretBytes(b"secret"), now + ONE_DAY)

        # Hadoop's RPC, which makes them, is simulated by no server of a whole life.
        monkeypatch.setattr(token_pushes, "mint_at", mint)

    def test_fresh_ones_carry_it_past_the_end_of_those_of_its_launch(self, life: Life) -> None:
        told = [LaunchToken(HDFS_TOKEN, f"ha-hdfs:{name}", renewer="yarn") for name in ("simulated", "there")]
        life.engine.ends = [SubmitOutcome(0, "", tuple(told))]
        first = life.begin()
        assert first.horizon is not None
        assert first.horizon.hard is not None
        self.say_it_began(life)
        assert isinstance(life.watch().step, Push), "whether it takes tokens is tried long before it needs any"
        life.reconcile()
        assert self.minted == []
        self.take(life)
        while life.clock.now() < first.horizon.hard + 2 * ONE_DAY:
            life.clock.ahead += timedelta(hours=3)
            life.engine.complete_epoch(REFRESHED)
            life.reconcile()
            self.take(life)
        report = life.reconcile()
        assert (report.generation, report.job.application) == (1, first.job.application)
        assert set(self.minted) == {"hdfs://simulated", "hdfs://there"}, "what its client told of its launch"
        assert 5 <= len(self.minted) / 2 <= 10, "one at each half of a renew interval, from the planned restart on"

    def test_a_job_that_takes_none_is_restarted_before_its_horizon(self, life: Life) -> None:
        first = life.begin()
        assert first.horizon is not None
        assert first.horizon.hard is not None
        self.say_it_began(life)
        while life.reconcile().generation == 1:
            life.clock.ahead += timedelta(hours=6)
            life.engine.complete_epoch(REFRESHED)
        assert life.clock.now() < first.horizon.hard

    def test_answers_to_pushes_stand_in_the_words_of_the_engine(self, life: Life) -> None:
        def answer(request: str, path: str) -> None:
            if request == "list":
                life.hdfs.at_request = lambda request, path: None
                self.take(life)
                life.hdfs.at_request = answer

        life.begin()
        self.say_it_began(life)
        told = [done.what for done in life.reconcile().done]
        life.hdfs.at_request = answer
        while not self.minted:
            life.clock.ahead += timedelta(hours=3)
            life.engine.complete_epoch(REFRESHED)
            told += [done.what for done in life.reconcile().done]
        assert "its foreman has not answered yet" in told[0]
        assert "its foreman and 0 hands use them, until" in told[-1]

    def say_it_began(self, life: Life) -> None:
        life.run.folder.mark(started_marker(1))

    def take(self, life: Life) -> None:
        """Answer what was pushed, as a job does that takes tokens."""
        known = pushes(life.run.folder.names(), 1)
        for push in known.unanswered:
            life.run.folder.mark(applied_marker(push))
