"""A changed spec that ends before its first commit goes back to the one that committed last: once, and aloud."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.queue import Queue, Queues
from airflow_kstream.model.errors import RestartAborted, Unavailable
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import ClaimStart, DesiredState, FailedSpec, Missing, Position
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.streams.restart.former_spec import committed, may_go_back, why_it_stays
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, read_claim, written_claim
from airflow_kstream.supervise.streams.look.observe import observe
from tests.simulated.ended_lives import BLUE, GREEN, Changing
from tests.simulated.flink import FlinkLife
from tests.simulated.life import Life
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, WEEK, claim_of, past_end

CODE = "User class threw exception: java.lang.IllegalStateException: no such column"
RED = replace(BLUE, arguments=("--fastest",))


@pytest.fixture
def stream(life: Life) -> Changing:
    """A stream whose first generation worked, and whose second one is a new declaration's."""
    changing = Changing(life)
    changing.reconcile(Mode.ENSURE)
    changing.commit()
    changing.declared = GREEN
    assert changing.reconcile().generation == 2
    return changing


def test_a_changed_spec_that_ends_before_its_first_commit_goes_back(stream: Changing) -> None:
    stream.end()
    told = stream.reconcile()
    assert told.phase is Phase.ENDED, "somebody has to know"
    assert told.why.endswith("; its changed spec committed nothing, and that of generation 1 follows")
    report = stream.follow()
    assert stream.arguments == [(), GREEN.arguments, ()]
    assert stream.claim.instead_of == FailedSpec(fingerprint(GREEN), 2)
    assert (
        "generation 2 ended with the declared spec before its first commit, so it is submitted with the spec of "
        "generation 1" in stream.claim.reason
    )
    words = "its declared spec does not run: generation 2 ended with it before its first commit"
    assert report.declaration.failed_spec.startswith(words)
    assert report.declaration.failed_spec.endswith("`kstream streams restart orders` tries it again")
    assert words in stream.life.watch().why
    assert stream.life.watch().past.former_spec
    assert report.to_json()["failed_spec"] == report.declaration.failed_spec


def test_any_end_that_costs_the_declared_spec_needs_a_person(stream: Changing) -> None:
    stream.end("User class threw exception: java.net.ConnectException: wrong-host:9092")
    assert stream.reconcile().phase is Phase.ENDED


def test_the_declaration_is_no_reason_to_restart_what_took_its_place(stream: Changing) -> None:
    stream.end()
    stream.follow()
    for _ in range(5):
        stream.commit()
        assert stream.reconcile().generation == 3
        assert not stream.life.watch().calls_for_action


@pytest.mark.parametrize("state", [None, DesiredState.RUNNING])
def test_a_persons_word_tries_the_declared_spec_again(stream: Changing, state: DesiredState | None) -> None:
    stream.end()
    stream.follow()
    stream.commit()
    if state:
        stream.life.set_desired(state)
    else:
        stream.life.request_restart()
    assert stream.reconcile().generation == 4
    assert stream.arguments[-1] == GREEN.arguments
    assert stream.claim.instead_of is None
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == (), "it failed once more"


def test_a_start_between_the_end_and_its_successor_tries_the_declared_spec(stream: Changing) -> None:
    stream.end()
    stream.reconcile()
    stream.life.set_desired(DesiredState.RUNNING)
    stream.follow()
    assert stream.arguments == [(), GREEN.arguments, GREEN.arguments]


def test_another_declaration_is_tried_at_once(stream: Changing) -> None:
    stream.end()
    stream.reconcile()
    stream.declared = RED
    stream.follow()
    assert stream.arguments[-1] == RED.arguments
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == (), "GREEN never committed, so BLUE is the last that did"
    stream.declared = GREEN
    assert stream.reconcile().generation == 5
    assert stream.arguments[-1] == GREEN.arguments


def test_what_took_its_place_is_followed_by_the_same_spec(stream: Changing) -> None:
    """At its horizon, after a commit: the declaration is still the one that failed."""
    stream.end()
    stream.follow()
    stream.commit()
    stream.life.clock.ahead += timedelta(days=6)
    assert stream.reconcile().generation == 4
    assert stream.arguments[-1] == ()
    assert stream.claim.instead_of == FailedSpec(fingerprint(GREEN), 2)


def test_what_never_committed_has_nothing_to_go_back_to(life: Life) -> None:
    stream = Changing(life)
    stream.reconcile(Mode.ENSURE)
    stream.declared = GREEN
    stream.reconcile()
    stream.end()
    stream.follow()
    assert stream.arguments == [(), GREEN.arguments, GREEN.arguments]


def test_a_spec_that_committed_once_stays(stream: Changing) -> None:
    stream.commit()
    stream.end()
    stream.follow()
    stream.end()
    stream.follow()
    assert stream.arguments[1:] == [GREEN.arguments] * 3


def test_a_preempted_try_is_no_verdict_and_the_next_one_is(stream: Changing) -> None:
    stream.end("AM Container for appattempt_1 exited with  exitCode: -102")
    stream.follow()
    assert stream.arguments[-1] == GREEN.arguments
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == ()


def test_a_secret_that_is_gone_keeps_the_declared_spec(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim names where a secret is kept, and never holds it."""
    stream = Changing(life)
    monkeypatch.setenv("KSTREAM_TEST_KEY", "hush")
    stream.declared = replace(BLUE, conf={"spark.ssl.keyPassword": SecretRef("env:KSTREAM_TEST_KEY")})
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    stream.declared = GREEN
    stream.reconcile()
    monkeypatch.delenv("KSTREAM_TEST_KEY")
    stream.end()
    stream.follow()
    assert stream.arguments == [(), GREEN.arguments, GREEN.arguments]
    assert "but that can't be done" in stream.claim.reason
    assert "env:KSTREAM_TEST_KEY is empty, or not on this host" in stream.claim.reason
    assert "so the declared one is tried again" in stream.claim.reason
    assert stream.claim.instead_of is None
    monkeypatch.setenv("KSTREAM_TEST_KEY", "hush")
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == (), "it is back"
    assert "hush" not in str(stream.claim) + str(stream.lines)


@pytest.fixture
def without_old_jar(stream: Changing) -> Changing:
    """The stream, whose former spec needs a file that nobody may read any longer."""
    stream.engine.former_files = ("/old.jar",)
    stream.life.hdfs.write("/old.jar", "")
    return stream


def test_a_queue_that_is_closed_keeps_the_declared_spec(life: Life) -> None:
    """A stream moves to another queue, and the old one takes nothing any longer."""
    stream = Changing(life)
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    stream.declared = replace(GREEN, deploy=Deploy(queue="new"))
    life.yarn.scheduler = Queues((Queue("root.default", "RUNNING"), Queue("root.new", "RUNNING")), complete=True)
    assert stream.reconcile().generation == 2
    life.yarn.scheduler = Queues((Queue("root.default", "STOPPED"), Queue("root.new", "RUNNING")), complete=True)
    stream.end()
    assert stream.follow().generation == 3
    assert stream.arguments == [(), GREEN.arguments, GREEN.arguments]
    assert "but that can't be done (find room" in stream.claim.reason


def test_a_jar_that_is_gone_keeps_the_declared_spec(without_old_jar: Changing) -> None:
    stream = without_old_jar
    stream.life.hdfs.delete("/old.jar")
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == GREEN.arguments
    assert "/old.jar does not exist" in stream.claim.reason


@pytest.mark.parametrize(
    ("former", "why"),
    [
        (replace(BLUE, checkpoints=(*BLUE.checkpoints, "/data/another")), "generation 1 wrote other checkpoints"),
        (replace(BLUE, credentials=KeytabCredentials("etl@EXAMPLE.COM", "/etl.keytab")), "it acts as etl@EXAMPLE.COM"),
    ],
    ids=["another checkpoint", "another identity"],
)
def test_there_is_no_way_back_to(life: Life, former: StreamSpec, why: str) -> None:
    stream = Changing(life)
    stream.declared = former
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    stream.declared = GREEN
    stream.reconcile()
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == GREEN.arguments
    assert any(why in line for line in stream.lines), stream.lines


def test_there_is_no_way_back_to_another_engines_spec(life: Life) -> None:
    life.begin()
    claim = observe(life.run).claim
    assert claim is not None
    assert why_it_stays(FlinkLife(life).spec, claim) == "generation 1 was a job of Spark's"


def change_claim(life: Life, number: int, **changed: object) -> None:
    """Let the claim of a generation say something else, as its own job could."""
    path = f"{life.run.id.folder}/{claim_file(number)}"
    life.hdfs.write(path, json.dumps(json.loads(life.hdfs.read(path)) | changed), overwrite=True)


def test_the_way_back_leads_to_what_a_supervisor_declared_whatever_the_claim_says(stream: Changing) -> None:
    """A claim is its job's to write: what it says of itself is submitted by nobody."""
    evil = replace(BLUE, application="/tmp/evil.py", arguments=("--evil",)).to_mapping()
    change_claim(stream.life, 1, spec=evil)
    change_claim(stream.life, 2, spec=evil)
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == BLUE.arguments
    assert "evil" not in str(stream.arguments)


def test_without_a_copy_of_what_committed_the_declared_spec_is_tried_again(stream: Changing) -> None:
    change_claim(stream.life, 1, spec_fingerprint=fingerprint(RED), spec=RED.to_mapping())
    stream.end()
    stream.follow()
    assert stream.arguments[-1] == GREEN.arguments
    kept = "no supervisor kept the declaration that generation 1 was submitted with"
    assert any(kept in line for line in stream.lines), stream.lines


def test_a_crash_after_the_claim_submits_the_former_spec_all_the_same(stream: Changing) -> None:
    """The reply to the claim was lost: the same process goes on with a claim of its own, which is not as declared."""
    stream.end()
    stream.reconcile()
    lost: list[str] = []

    def lose_the_reply(request: str, path: str) -> None:
        if path.endswith(claim_file(3)) and path in stream.life.hdfs.files and not lost:
            lost.append(path)
            raise Unavailable("no reply")

    stream.life.hdfs.at_request = lose_the_reply
    stream.follow()
    assert lost
    assert stream.arguments[-1] == ()


def test_the_restart_of_what_took_its_place_checks_that_spec(without_old_jar: Changing) -> None:
    """A planned restart whose former spec can't be submitted leaves the running generation alone."""
    stream = without_old_jar
    stream.end()
    stream.follow()
    stream.commit()
    stream.life.hdfs.delete("/old.jar")
    stream.life.clock.ahead += timedelta(days=5, hours=12)
    with pytest.raises(RestartAborted, match=r"/old\.jar does not exist"):
        stream.reconcile()
    assert stream.engine.submitted.keys() == {1, 2, 3}


def test_a_person_who_changed_back_and_forth_is_no_duel(stream: Changing) -> None:
    stream.end()
    stream.follow()
    stream.commit()
    stream.life.request_restart()
    stream.reconcile()
    stream.commit()
    stream.declared = BLUE
    assert stream.reconcile().generation == 5
    assert stream.arguments == [(), GREEN.arguments, (), GREEN.arguments, ()]


class TestTheClaim:
    def test_tells_every_later_supervisor(self) -> None:
        failed = FailedSpec("2:abc", 7)
        text = written_claim(ClaimDraft(8, "n", TICKET_SPEC, WEEK, {}, "why", start=ClaimStart(failed)), "ann@host")
        assert read_claim(text, 8, START).instead_of == failed

    @pytest.mark.parametrize("damaged", ["{}", "7", '"x"', '{"fingerprint": 1}', "[]"])
    def test_that_is_damaged_there_runs_what_is_declared(self, damaged: str) -> None:
        text = written_claim(ClaimDraft(8, "n", TICKET_SPEC, WEEK, {}, "why"), "ann@host")
        assert read_claim(text.replace('"instead_of": null', f'"instead_of": {damaged}'), 8, START).instead_of is None

    def test_of_an_earlier_version_was_submitted_as_declared(self) -> None:
        text = written_claim(ClaimDraft(8, "n", TICKET_SPEC, WEEK, {}, "why"), "ann@host")
        assert read_claim(text.replace('"instead_of"', '"unknown"'), 8, START).instead_of is None


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("end", "goes"),
    [
        (past_end(2, kind=EndKind.CODE), True),
        (past_end(2), True),
        (past_end(2, kind=EndKind.INFRASTRUCTURE), True),
        (past_end(2, kind=EndKind.CREDENTIALS), True),
        (past_end(2, kind=EndKind.MEMORY), True),
        (past_end(2, kind=EndKind.CODE, worked=True), False),
        (past_end(2, kind=EndKind.CODE, shared=True), False),
        (past_end(2, kind=EndKind.KILLED, killed_by="bob"), False),
        (past_end(2, kind=EndKind.KILLED), False),
        (past_end(2, kind=EndKind.PREEMPTED), False),
        (past_end(2, kind=EndKind.NODE_LOST), False),
        (past_end(2, kind=EndKind.LIFETIME), False),
        (past_end(2, kind=EndKind.AM_EXPIRED, lasted=timedelta(days=1)), False),
        (past_end(2, kind=EndKind.NEVER_RAN), False),
    ],
)
def test_which_ends_may_be_the_specs(end: PastEnd, goes: bool) -> None:
    assert may_go_back([end]) is goes


def test_a_claim_without_an_application_is_one_crash_and_two_are_none() -> None:
    never = [past_end(number, START + number * MINUTE, EndKind.NEVER_RAN) for number in (2, 3)]
    assert may_go_back(never)
    assert not may_go_back([never[0], replace(never[1], generation=4)])


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (Position(None, -1, -1), Position("q", 3, 3), True),
        (Position("q", 3, 3), Position("q", 5, 4), True),
        (Position("q", 3, 3), Position("q", 4, 3), False),
        (Position("q", 3, 3), Position("another", 9, 9), False),
        (None, Position("q", 5, 4), False),
    ],
)
def test_a_generation_committed_if_the_next_claim_found_more(
    before: Position | None, after: Position, moved: bool
) -> None:
    first = claim_of(TICKET_SPEC, 1, START, {"/c": before} if before else {})
    later = claim_of(TICKET_SPEC, 2, START, {"/c": after})
    assert committed(first, later) is moved
    for doubtful in (changed(first, missing=frozenset({Missing.POSITIONS})), first):
        unknown = changed(later, missing=frozenset({Missing.POSITIONS})) if doubtful is first else later
        assert not committed(doubtful, unknown)
    assert not committed(first, replace(later, positions={}))


def test_declared_policies_hold_for_the_former_spec(stream: Changing) -> None:
    stream.declared = replace(GREEN, restart=RestartPolicy(jitter_ratio=0, max_age=timedelta(days=2)))
    stream.end()
    stream.follow()
    assert stream.engine.submitted[3].restart.max_age == timedelta(days=2)
