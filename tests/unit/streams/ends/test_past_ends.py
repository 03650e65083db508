"""A whole reconcile after ends that nobody planned: what it records, who learns of it, and when it goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.contract import ended_file, failed_marker, recorded_ends
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.plan import Note, Phase, Settled
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.memory import record_end
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import lines
from tests.simulated.ended_lives import CODE, FAILED, KILLED, end, keep, recorded
from tests.simulated.life import SPEC, Life
from tests.simulated.yarn import START, past_end

INFRASTRUCTURE = "User class threw exception: java.net.ConnectException: nn"
BY_BOB = "Application application_1_0001 was killed by user bob at 10.0.0.7"


def test_a_watch_tells_an_end_once_and_then_goes_on(life: Life) -> None:
    """The task fails once; its retry and all that follow stay deferred until it is time."""
    life.begin()
    end(life)
    assert life.watch().calls_for_action
    report = life.reconcile(Mode.WATCH)
    assert (report.phase, report.job.succeeded, report.job.diagnostics) == (Phase.ENDED, False, CODE)
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
    assert [one.clues.credential for one in recorded(life)] == [credential]
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
    assert [(one.generation, one.clues.credential) for one in recorded(life)] == [(1, "")]


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
    _, _, state, *_ = (str(*column.cells) for column in streams_table({"orders": verdict}).columns)
    assert f"ended unplanned {len(verdict.past.ends)} times within a day" in state


def test_a_record_that_cannot_be_written_submits_nothing(life: Life) -> None:
    """A quota that is full: no claim could be written either, and a person can still stop the stream."""
    life.begin()
    end(life)

    def refuse_writes(request: str, path: str) -> None:
        if request == "write":
            raise Conflict("The NameSpace quota is exceeded")

    life.hdfs.at_request = refuse_writes
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
    "com.acme.LoginException: http://nn1:9870/webhdfs/v1/in?op=OPEN&delegation={secret}&offset=0 answered 403",
    "com.acme.LoginException: https://a.blob.core.windows.net/in?sv=2026&sig={secret}",
    "com.acme.LoginException: https://b.s3.amazonaws.com/in?X-Amz-Signature={secret}&x=1",
    "com.acme.LoginException: Authorization: Basic {secret}",
    'com.acme.LoginException: {{"Authorization":"Bearer {secret}"}}',
    'com.acme.LoginException: Set-Cookie: hadoop.auth="u=etl&t=kerberos&s={secret}"; Path=/',
    "com.acme.LoginException: load --user ann --password {secret} --fast",
    "com.acme.LoginException: refused bearer {secret}.{secret}.{secret}",
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
        "Basic authentication and Bearer tokens are off, as --password-file /k/orders and --token-lifetime 7d say",
        "authorization: denied for orders; op=OPEN&offset=0",
        "User class threw exception: java.lang.IllegalStateException: state=7, key=orders, token.count=3",
    ],
)
def test_words_that_tell_a_cause_are_left_as_they_are(words: str) -> None:
    assert without_secrets(words) == words
