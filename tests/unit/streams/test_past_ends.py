"""A whole reconcile after ends that nobody planned: what it records, who learns of it, and when it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.contract import ended_file, failed_marker, recorded_ends
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.generation_end import EndKind, PastEnd
from airflow_kstream.model.plan import Note, Phase, Settled
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.stream_policies import StopPolicy, WatchPolicy
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.past_ends import past_ends, record_end
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import lines
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import SimHdfs
from tests.simulated.yarn import START, past_end

FAILED, KILLED = ApplicationState.FAILED, ApplicationState.KILLED
CODE = "User class threw exception: java.lang.IllegalStateException: x"
BARE = "User application exited with status 1"
INFRASTRUCTURE = "User class threw exception: java.net.ConnectException: nn"
# Few looks, and a short proof of death: what is tested here are hours.
BRISK = replace(
    SPEC, watch=WatchPolicy(look_every=timedelta(seconds=10)), stop=StopPolicy(silence=timedelta(seconds=1))
)
BY_BOB = "Application application_1_0001 was killed by user bob at 10.0.0.7"


def end(life: Life, diagnostics: str = CODE, state: ApplicationState = FAILED, lived: float = 60) -> None:
    """End the newest application after it lived so many seconds."""
    life.clock.ahead += timedelta(seconds=lived)
    life.yarn.end(list(life.yarn.apps)[-1], state, diagnostics)


def recorded(life: Life) -> tuple[PastEnd, ...]:
    return past_ends(life.run.folder, life.run.folder.names())


def keep(life: Life, ends: int, diagnostics: str = CODE) -> list[Phase]:
    """Live as the operator's task does, with a job that dies a minute after each start; return how its runs ended."""
    life.run, phases, mode = replace(life.run, spec=BRISK), [], Mode.ENSURE
    while len(life.yarn.apps) <= ends:
        report = life.reconcile(mode)
        phases.append(report.phase)
        mode = Mode.ENSURE if report.ended else Mode.WATCH
        if report.phase is Phase.RUNNING:
            end(life, diagnostics)
        if isinstance(step := life.watch().step, Settled) and step.until:
            life.clock.ahead += max(step.until - life.clock.now(), timedelta())
    return phases


def test_a_watch_tells_an_end_once_and_then_goes_on(life: Life) -> None:
    """The task fails once; its retry and all that follow stay deferred until it is time."""
    life.begin()
    end(life)
    assert life.watch().calls_for_action
    report = life.reconcile(Mode.WATCH)
    assert (report.phase, report.succeeded, report.diagnostics) == (Phase.ENDED, False, CODE)
    for mode in Mode:
        assert life.reconcile(mode).generation == 2


def test_what_needs_nobody_is_followed_by_the_watch_itself(life: Life) -> None:
    life.begin()
    end(life, INFRASTRUCTURE)
    report = life.reconcile(Mode.WATCH)
    assert (report.phase, report.generation) == (Phase.RUNNING, 2)
    assert "generation 1 ended by itself (infrastructure)" in report.done[1].why


def test_each_record_repeats_the_ends_before_it(life: Life) -> None:
    life.begin()
    for _ in range(4):
        end(life, INFRASTRUCTURE)
        while life.reconcile().phase is Phase.BACKING_OFF:
            life.clock.ahead += timedelta(minutes=1)
    assert [one.generation for one in recorded(life)] == [1, 2, 3, 4]
    assert {one.kind for one in recorded(life)} == {EndKind.INFRASTRUCTURE}
    assert recorded_ends(life.run.folder.names()) == (2, 3, 4), "the last ones hold all"


def test_a_job_that_dies_at_each_start_is_started_ever_less_often(life: Life) -> None:
    began = life.clock.now()
    phases = keep(life, ends=16)
    assert life.clock.now() - began > timedelta(hours=8)
    assert phases.count(Phase.ENDED) == len(recorded(life)), "each end is one failed run"
    assert "its circuit breaker is open" in life.reconcile(Mode.ENSURE).why


def test_a_breaker_fails_the_watch_even_if_each_end_needed_nobody(life: Life) -> None:
    phases = keep(life, ends=13, diagnostics=INFRASTRUCTURE)
    assert Phase.ENDED in phases
    assert phases.index(Phase.ENDED) > 3
    assert life.run.folder.desired(life.run.folder.names()).at is None, "nobody wrote a desired state"


def test_a_stream_that_a_person_killed_waits_for_their_word(life: Life) -> None:
    life.begin()
    end(life, BY_BOB, KILLED)
    assert life.reconcile(Mode.WATCH).phase is Phase.ENDED
    for mode in (Mode.ENSURE, Mode.WATCH):
        life.clock.ahead += timedelta(days=1)
        report = life.reconcile(mode)
        assert (report.phase, report.generation, report.ended) == (Phase.KILLED, 1, False)
        assert not life.watch().calls_for_action
    life.set_desired(DesiredState.RUNNING)
    assert life.watch().calls_for_action
    assert life.reconcile(Mode.WATCH).generation == 2


def test_a_persons_start_after_a_failed_submission_is_carried_out_at_once(life: Life) -> None:
    """A client that fails leaves a claim without an application; the person has mended it."""
    life.begin()
    for number in range(2, 9):
        end(life)
        life.set_desired(DesiredState.RUNNING)
        before = life.clock.ahead
        assert life.reconcile(Mode.ENSURE).generation == number
        assert life.clock.ahead - before <= SPEC.stop.silence, "the proof of death alone"


def test_of_two_supervisors_one_records_an_end_and_fails(life: Life) -> None:
    life.begin()
    end(life)
    both = [Reconciler(life.run, tell=lambda line: None).plan(Mode.WATCH)[0] for _ in range(2)]
    first, second = (record_end(life.run.folder, [past_end(1, seen.now, EndKind.CODE)]) for seen in both)
    assert (first, second) == (True, False)
    assert len(recorded(life)) == 1
    assert life.reconcile(Mode.WATCH).phase is Phase.RUNNING, "the other one has told it"


def test_a_supervisor_that_was_slower_tells_nobody_of_an_end(life: Life) -> None:
    life.begin()
    end(life)
    slower = Reconciler(life.run, tell=lambda line: None)
    observation, note = slower.plan(Mode.WATCH)
    assert isinstance(note, Note)
    assert life.reconcile(Mode.WATCH).phase is Phase.ENDED
    assert slower._note_end(observation, note, Mode.WATCH) is note, "it looks again, and finds the end recorded"
    assert slower._story.done == []


def test_a_writer_that_was_frozen_records_nothing_over_newer_ends(life: Life) -> None:
    life.begin()
    assert record_end(life.run.folder, [past_end(7)])
    assert not record_end(life.run.folder, [past_end(1)])
    assert [one.generation for one in recorded(life)] == [7]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2}', '{"version": 99, "ends": []}', '{"ends": [{}]}', '{"ends": []}']
)
def test_a_record_that_cannot_be_read_still_sets_the_pace(life: Life, text: str) -> None:
    """Written by a newer version, or damaged: nothing else is known of the past, and nothing loops."""
    life.begin()
    end(life)
    life.hdfs.write(f"{life.run.id.folder}/{ended_file(1)}", text)
    before = life.clock.ahead
    assert life.reconcile(Mode.WATCH).generation == 2
    assert life.clock.ahead - before <= SPEC.failure.backoff
    assert life.hdfs.read(f"{life.run.id.folder}/{ended_file(1)}") == text, "it is left alone"


def test_a_record_keeps_a_day_and_some_older_ends(life: Life) -> None:
    past = [past_end(number, START + timedelta(minutes=number)) for number in range(1, 700)]
    record_end(life.run.folder, past)
    assert len(recorded(life)) == 500
    late = past_end(700, START + timedelta(days=9))
    record_end(life.run.folder, [*past, late])
    assert [one.generation for one in recorded(life)] == [*range(680, 701)]


def test_the_drivers_own_error_is_recorded(life: Life) -> None:
    life.begin()
    error = json.dumps({"error": "org.apache.kafka.common.errors.TimeoutException: topic t-3 after 60000 ms"})
    life.hdfs.write(f"{life.run.id.folder}/{failed_marker(1)}", error)
    end(life)
    life.reconcile(Mode.WATCH)
    (one,) = recorded(life)
    assert (one.kind, one.fingerprint) == (
        EndKind.INFRASTRUCTURE,
        "org.apache.kafka.common.errors.TimeoutException: topic t-# after # ms",
    )


def test_the_credential_that_failed_is_recorded_shown_and_told(life: Life) -> None:
    life.begin()
    end(life, "SecretManager$InvalidToken: x; Kind: HDFS_DELEGATION_TOKEN, Service: ha-hdfs:ns1, Ident: (owner=orders)")
    told: list[str] = []
    Reconciler(life.run, tell=told.append).run(Mode.WATCH)
    credential = "HDFS_DELEGATION_TOKEN of ha-hdfs:ns1"
    assert [one.credential for one in recorded(life)] == [credential]
    assert [one["credential"] for one in life.watch().to_json()["ends"]] == [credential]
    assert any(f"ended by itself (credentials: {credential})" in line for line in told)
    table = " ".join(" ".join(lines(streams_table({"orders": life.watch()}))).split())
    assert f"within a day (credentials: {credential})" in table


def test_a_record_of_an_earlier_version_names_no_credential(life: Life) -> None:
    life.begin()
    record_end(life.run.folder, [past_end(1)])
    path = f"{life.run.id.folder}/{ended_file(1)}"
    written = json.loads(life.hdfs.read(path))
    del written["ends"][0]["credential"]
    life.hdfs.write(path, json.dumps(written), overwrite=True)
    assert [(one.generation, one.credential) for one in recorded(life)] == [(1, "")]


def test_status_shows_the_pause_the_breaker_and_the_past_ends(life: Life) -> None:
    keep(life, ends=12)
    life.reconcile(Mode.WATCH)
    verdict = life.watch()
    assert isinstance(verdict.step, Settled)
    assert verdict.breaker_open
    data = verdict.to_json()
    assert (data["step"], data["breaker_open"]) == ("settled", True)
    assert data["followed_at"] > life.clock.now().isoformat()
    assert {one["kind"] for one in data["ends"]} == {"code"}
    shown = " ".join(lines(streams_table({"orders": verdict}))).replace("\n", " ")
    assert f"ended unplanned {len(verdict.ends)} times within a day" in " ".join(shown.split())


class TestSeveralStreams:
    """Streams of one state_dir, on one simulated HDFS and ResourceManager."""

    @pytest.fixture
    def lives(self, life: Life) -> list[Life]:
        others = [self.beside(life, f"s{number}") for number in range(4)]
        for one in others:
            one.begin()
        return others

    @staticmethod
    def beside(life: Life, name: str) -> Life:
        other = Life()
        other.clock, other.yarn = life.clock, life.yarn
        other.use(life.hdfs)
        other.run = replace(other.run, spec=replace(BRISK, name=name, checkpoints=(f"/data/{name}",)))
        return other

    @staticmethod
    def die(lives: list[Life], diagnostics: str) -> None:
        for application in list(lives[0].yarn.apps):
            if lives[0].yarn.apps[application].alive:
                lives[0].yarn.end(application, FAILED, diagnostics)

    def test_what_ends_several_at_once_is_the_environments(self, lives: list[Life]) -> None:
        self.die(lives, INFRASTRUCTURE)
        for one in lives:
            one.reconcile(Mode.WATCH)
        assert [recorded(one)[0].shared for one in lives] == [False, False, True, True]

    def test_all_come_back_without_a_person_however_long_it_lasts(self, lives: list[Life]) -> None:
        """Kafka is away: nobody's breaker opens, and no task fails for it, the first to end included."""
        phases: list[Phase] = []
        for _ in range(9):
            self.die(lives, INFRASTRUCTURE)
            phases += [one.reconcile(Mode.WATCH).phase for one in lives]
            lives[0].clock.ahead += timedelta(minutes=31)
        assert Phase.ENDED not in phases
        assert all(one.shared for life in lives for one in recorded(life)[1:-1])
        assert [one.reconcile(Mode.WATCH).phase for one in lives] == [Phase.RUNNING] * len(lives)

    def test_two_streams_are_no_environment_however_often_they_end(self, lives: list[Life]) -> None:
        """A stream's own earlier ends are no company of its later ones."""
        for _ in range(3):
            self.die(lives, INFRASTRUCTURE)
            for one in lives[:2]:
                one.reconcile(Mode.WATCH)
        assert not any(one.shared for life in lives for one in recorded(life))

    @pytest.mark.parametrize(("apart", "diagnostics"), [(11, INFRASTRUCTURE), (0, BARE), (0, "")])
    def test_what_only_looks_alike_is_each_streams_own(self, lives: list[Life], apart: float, diagnostics: str) -> None:
        """Errors at other times, or an exit status: every second job ends with 1."""
        self.die(lives, diagnostics)
        for one in lives:
            one.reconcile(Mode.WATCH)
            lives[0].clock.ahead += timedelta(minutes=apart)
        assert not any(one.shared for life in lives for one in recorded(life))

    def test_a_neighbour_that_cannot_be_read_hinders_nobody(self, lives: list[Life]) -> None:
        for one in lives[1:]:
            lives[0].hdfs.write(f"{one.run.id.folder}/{ended_file(9)}", "no JSON")
        self.die(lives, INFRASTRUCTURE)
        assert lives[0].reconcile(Mode.WATCH).generation == 2

    def test_a_fleet_costs_each_stream_a_few_requests(self, life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
        """Folders that changed lately, and none of them with this error: at most twenty are listed."""
        for number in range(100):
            life.hdfs.write(f"/kstream/s{number}-00000000/{ended_file(1)}", "no JSON")
        life.begin()
        end(life, INFRASTRUCTURE)
        listed: list[str] = []
        real = SimHdfs.list

        def counted(hdfs: SimHdfs, path: str) -> tuple[FileStatus, ...]:
            listed.append(path)
            return real(hdfs, path)

        monkeypatch.setattr(SimHdfs, "list", counted)
        life.reconcile(Mode.WATCH)
        assert len([path for path in listed if path.startswith("/kstream/s")]) == 20


def test_a_record_that_cannot_be_written_submits_nothing(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota that is full: no claim could be written either, and a person can still stop the stream."""
    life.begin()
    end(life)

    def full(hdfs: SimHdfs, path: str, text: str, **more: object) -> None:
        raise Conflict("The NameSpace quota is exceeded")

    monkeypatch.setattr(SimHdfs, "write", full)
    with pytest.raises(Conflict, match="quota"):
        life.reconcile(Mode.ENSURE)
    assert len(life.yarn.apps) == 1


SECRETS = (
    "java.sql.SQLException: Access denied: jdbc:mysql://etl:{secret}@db/orders",
    "java.sql.SQLException: Access denied, user=etl password={secret}",
    "java.sql.SQLException: Access denied (password: '{secret}')",
    'com.acme.LoginException: {{"user": "etl", "password": "{secret}"}}',
    "com.acme.LoginException: -Dspark.ssl.keyStorePassword={secret} was refused",
    "com.acme.LoginException: fs.s3a.secret.key={secret};region=eu",
    "com.acme.LoginException: https://login?access_token={secret}&scope=all",
    "KafkaException: keytab /k/orders.keytab of https://orders:{secret}@registry:8081 failed",
)


@pytest.mark.parametrize("diagnostics", SECRETS)
@pytest.mark.parametrize("left_by", ["YARN", "driver"])
def test_a_secret_in_the_words_of_a_job_reaches_no_record_and_no_log(
    life: Life, diagnostics: str, left_by: str
) -> None:
    words = "User class threw exception: " + diagnostics.format(secret="hunter2")
    life.begin()
    if left_by == "YARN":
        told_by_yarn = {"id": "application_1_0001", "state": "FAILED", "finalStatus": "FAILED", "diagnostics": words}
        ended = Application.from_json(told_by_yarn)
        life.yarn.apps[ended.id] = replace(life.yarn.end(ended.id, FAILED), diagnostics=ended.diagnostics)
    else:
        life.hdfs.write(f"{life.run.id.folder}/{failed_marker(1)}", json.dumps({"error": words}))
        end(life)
    told: list[str] = []
    report = Reconciler(life.run, tell=told.append).run(Mode.WATCH)
    (one,) = recorded(life)
    assert one.kind is EndKind.CODE
    assert one.fingerprint.startswith(diagnostics.partition(":")[0])
    written = "".join(text for path, (text, _) in life.hdfs.files.items() if failed_marker(1) not in path)
    shown = f"{told} {report.to_json()} {life.watch()}"
    assert "hunter2" not in written + shown
    assert "***" in one.fingerprint


@pytest.mark.parametrize(
    "words",
    [
        "org.apache.hadoop.security.token.SecretManager$InvalidToken: Invalid AMRMToken from appattempt_1_0001_000001",
        "token (HDFS_DELEGATION_TOKEN token 7 for orders with renewer yarn) is expired, current time: 2026-01-01",
        "Client cannot authenticate via:[TOKEN, KERBEROS]; keytab: /etc/orders.keytab, principal=orders@EXAMPLE.COM",
        "User class threw exception: java.lang.IllegalStateException: state=7, key=orders, token.count=3",
    ],
)
def test_words_that_tell_a_cause_are_left_as_they_are(words: str) -> None:
    assert without_secrets(words) == words
