"""A whole reconcile: it waits by its own clock, says by what proof it went on, and starts from nobody else's state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, RestartAborted
from airflow_kstream.model.streams.contract import accepted_marker, reached_marker, stopped_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import GiveUp, Phase, Report
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.orders.desired import start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.flink import FLINK_SPEC, FlinkLife
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import SimYarn
from tests.simulated.yarn import START, WEEK

EPOCHS = f"{SPEC.checkpoints[0]}/epochs.json"


def reason(report: Report, what: str) -> str:
    """Return the reason of the one action that did this."""
    (why,) = [action.why for action in report.done if what in action.what]
    return why


def ended(life: Life) -> None:
    life.begin()
    for _ in range(3):
        life.engine.complete_epoch(SPEC)
    life.reconcile()
    life.yarn.end("application_1_0001", ApplicationState.FAILED)


def test_an_end_without_proof_costs_a_silence_that_is_watched(life: Life) -> None:
    ended(life)
    life.clock.ahead += timedelta(days=1)
    before = life.clock.ahead
    report = life.begin()
    assert report.generation == 2
    assert SPEC.stop.silence <= life.clock.ahead - before < 2 * SPEC.stop.silence
    assert "its checkpoints were silent for 30s" in reason(report, "claimed generation 2")


def test_the_drivers_word_costs_no_wait_and_is_named(life: Life) -> None:
    ended(life)
    life.hdfs.write(f"{life.run.id.folder}/{stopped_marker(1)}", "{}")
    before = life.clock.ahead
    report = life.begin()
    assert life.clock.ahead - before <= SPEC.failure.backoff, "the pause after an end that nobody planned"
    assert "it stopped before its end, and told so" in reason(report, "claimed generation 2")


def test_a_lost_checkpoint_is_refused_until_a_person_accepts_it_as_it_is(life: Life) -> None:
    ended(life)
    life.hdfs.delete(EPOCHS)
    for _ in range(2):
        with pytest.raises(Conflict, match=r"is gone: it had come to batch .*kstream streams accept"):
            life.begin()
    generation, lines = accept_checkpoints(life.run, "we start from the beginning")
    assert generation == 2
    assert "batch -1 planned" in lines[0]
    assert life.begin().generation == 2


def test_a_generation_from_an_accepted_position_is_replaced_like_any_other(life: Life) -> None:
    """What its predecessors had reached is no longer held against it, in one reconcile or in the next."""
    ended(life)
    newest = life.hdfs.files.pop(EPOCHS)
    life.engine.complete_epoch(SPEC)
    with pytest.raises(Conflict, match="is older than it was: batch 0 is planned"):
        life.begin()
    accept_checkpoints(life.run, "from the copy of this morning")
    assert life.begin().generation == 2
    for generation in (3, 4):
        life.request_restart()
        assert life.reconcile().generation == generation
    assert newest


def test_what_was_accepted_holds_for_one_generation(life: Life) -> None:
    test_a_lost_checkpoint_is_refused_until_a_person_accepts_it_as_it_is(life)
    for _ in range(3):
        life.engine.complete_epoch(SPEC)
    life.request_restart()
    assert life.reconcile().generation == 3
    life.yarn.end("application_1_0003", ApplicationState.FAILED)
    life.hdfs.delete(EPOCHS)
    with pytest.raises(Conflict, match="is gone"):
        life.begin()


def test_nothing_is_accepted_while_an_application_moves_the_checkpoint(life: Life) -> None:
    life.begin()
    with pytest.raises(Conflict, match="application_1_0001 still runs"):
        accept_checkpoints(life.run, "")


def test_a_first_generation_does_not_follow_an_unknown_writer(life: Life) -> None:
    life.engine.complete_epoch(SPEC)
    life.clock.ahead += timedelta(days=30)
    for attempt in (life.begin, lambda: accept_checkpoints(life.run, "its job was stopped for good")):
        with pytest.raises(Conflict, match=r"has no owner and holds data up to batch 0.*kstream streams take-over"):
            attempt()
    take_over(life.run, "its job was stopped for good", tell=lambda line: None)
    assert life.begin().generation == 1


def test_a_lost_state_dir_submits_nothing_and_takes_a_running_stream_up_again(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.hdfs.delete(life.run.id.folder, recursive=True)
    report = life.begin()
    assert (report.phase, report.job.application, report.done) == (Phase.RUNNING, "application_1_0001", ())
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    with pytest.raises(Conflict, match="has this stream as its owner, but state_dir has no claim of it"):
        life.begin()


def test_an_application_that_arrives_as_it_is_given_up_keeps_its_fence(life: Life) -> None:
    """The look that decided it is older than the application: e17 of the review."""
    draft = ClaimDraft(1, "nonce1", SPEC, WEEK, {}, "test")
    claim = life.run.folder.make_claim(draft)
    told: list[str] = []
    reconciler = Reconciler(life.run, tell=told.append)
    observation, _ = reconciler.plan()
    life.yarn.start(frozenset(life.run.id.tags(1)))
    reconciler._carry_out(observation, GiveUp(1, claim.fence, "no application"))
    assert claim.fence in life.run.folder.names()
    assert told == ["generation 1 arrived as it was to be given up: checking again"]


def test_a_wait_for_an_application_lasts_by_the_clock_of_the_one_that_waits(life: Life) -> None:
    life.run.folder.make_claim(ClaimDraft(1, "nonce1", SPEC, WEEK, {}, "test"))
    life.clock.ahead += timedelta(hours=5)
    before = life.clock.ahead
    report = life.begin()
    assert report.generation == 2
    assert life.clock.ahead - before >= SPEC.submit.ttl
    assert "gave up generation 1" in [action.what for action in report.done]


def test_a_restart_that_a_lost_checkpoint_hinders_is_aborted_and_harms_nothing(life: Life) -> None:
    life.begin()
    for _ in range(3):
        life.engine.complete_epoch(SPEC)
    life.reconcile()
    life.hdfs.delete(EPOCHS)
    life.request_restart()
    # The checkpoint went after the claim of this generation, so only what a reconcile noted tells.
    with pytest.raises(RestartAborted, match=r"is gone: it had come to batch 2.*the current generation keeps running"):
        life.reconcile()
    assert life.yarn.apps["application_1_0001"].alive


def test_after_a_take_over_nothing_is_left_to_accept(life: Life) -> None:
    """Another stream had it meanwhile, and its query is not the one that this stream's last claim remembers."""
    ended(life)
    life.begin()
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    life.hdfs.delete(EPOCHS)
    life.set_desired(DesiredState.RUNNING)
    with pytest.raises(Conflict, match="kstream streams accept"):
        life.begin()
    take_over(life.run, "we start from what the other stream left", tell=lambda line: None)
    assert life.begin().generation == 3


@dataclass
class Forgetful(SimYarn):
    """It lists nothing until some moment."""

    remembers: datetime = START

    def applications(self, tag: str) -> tuple[Application, ...]:
        return super().applications(tag) if self.clock.now() > self.remembers else ()


@pytest.mark.parametrize("seconds", [1, 30, 110])
def test_a_resourcemanager_that_lists_nothing_for_a_while_harms_nobody(life: Life, seconds: int) -> None:
    """An old one that woke, or a new one that recovers: the source is idle, so no commit tells: e06 of the review."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.use(
        life.hdfs,
        life.engine,
        Forgetful(life.clock, life.yarn.apps, remembers=life.clock.now() + timedelta(seconds=seconds)),
    )
    report = life.begin()
    assert (report.phase, report.generation, report.done) == (Phase.RUNNING, 1, ())
    names = life.run.folder.names()
    claim = life.run.folder.claim(names)
    assert claim is not None
    assert claim.fence in names


def test_a_stopped_stream_is_stopped_whatever_became_of_its_checkpoint(life: Life) -> None:
    ended(life)
    life.hdfs.delete(EPOCHS)
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile(Mode.ENSURE).phase is Phase.STOPPED


def test_a_file_for_the_successor_that_is_broken_keeps_nobody_from_stopping(life: Life) -> None:
    name = accepted_marker(2)
    life.begin()
    life.hdfs.write(f"{life.run.id.folder}/{name}", "no JSON")
    with pytest.raises(InvalidInput, match=f"{name} can't be understood"):
        life.begin()
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED


@pytest.mark.parametrize("note", ["{", b"\xff\xfe\x00", '{"version": 99}'])
def test_a_note_of_positions_that_is_broken_keeps_no_stream_from_its_restart(life: Life, note: str | bytes) -> None:
    """It is history: what the claim tells of the checkpoints is known all the same."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.reconcile()
    life.hdfs.write(f"{life.run.id.folder}/{reached_marker(1)}", note, overwrite=True)
    told: list[str] = []
    life.request_restart()
    report = Reconciler(life.run, tell=told.append).run(Mode.WATCH)
    assert report.generation == 2
    (line,) = {line for line in told if line.startswith("/")}
    assert "/reached-000001 can't be understood: " in line
    assert "a checkpoint that was restored to an older state since the last submission goes unnoticed until " in line


def test_a_job_without_checkpoints_gets_the_silence_as_a_wait(life: Life) -> None:
    life.run = replace(life.run, spec=replace(SPEC, checkpoints=()))
    life.begin()
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    before = life.clock.ahead
    assert life.begin().generation == 2
    assert life.clock.ahead - before >= SPEC.stop.silence


# Twice the age that the newest checkpoint may have, by Flink's default timeout of 10 minutes.
SILENCE = timedelta(minutes=40)


@pytest.fixture
def flink(life: Life) -> FlinkLife:
    """A stream that writes below /data/orders, whose generation has completed a checkpoint."""
    flink = FlinkLife(life, replace(FLINK_SPEC, outputs=("/data/orders",)))
    life.hdfs.write("/data/orders/00/part-0-0", "rows")
    start_from(life.run, "a new stream", fresh=True)
    life.begin()
    flink.complete(1)
    return flink


def sums(flink: FlinkLife, at: Callable[[int], object] = lambda number: None) -> list[str]:
    """Return the outputs that are summed up from now on, in a list that grows. `at` is called before each answer."""
    asked: list[str] = []

    def request(what: str, path: str) -> None:
        if what == "sum":
            asked.append(path)
            at(len(asked))

    flink.hdfs.at_request = request
    return asked


def test_a_death_without_proof_costs_five_looks_at_each_output(flink: FlinkLife) -> None:
    asked, before = sums(flink), flink.life.clock.ahead
    flink.life.reconcile()
    assert not asked, "nobody asks of a stream that runs"
    flink.die()
    report = flink.life.begin()
    assert asked == ["/data/orders"] * 5
    assert flink.life.clock.ahead - before >= SILENCE
    assert "its checkpoints and outputs were silent for 40m" in reason(report, "claimed generation 2")


def test_what_a_dead_job_still_writes_begins_the_silence_again(flink: FlinkLife) -> None:
    def write(number: int) -> None:
        if number == 3:
            flink.hdfs.write("/data/orders/00/.part-0-1.inprogress.uuid", "")

    asked, before = sums(flink, write), flink.life.clock.ahead
    flink.die()
    flink.life.begin()
    assert SILENCE * 1.5 <= flink.life.clock.ahead - before < 2 * SILENCE
    assert len(asked) == 7


def test_outputs_that_are_written_for_ever_are_no_dead_jobs(flink: FlinkLife) -> None:
    sums(flink, lambda number: flink.hdfs.write(f"/data/orders/00/part-9-{number}", "rows"))
    flink.die()
    with pytest.raises(Conflict, match=r"/data/orders changed within the last 40m.*kstream streams accept"):
        flink.life.begin()
    assert len(flink.yarn.apps) == 1
    accept_checkpoints(flink.life.run, "another program writes there")
    assert flink.life.begin().generation == 2


def test_outputs_that_the_user_may_not_list_prove_no_death(flink: FlinkLife) -> None:
    def refuse(number: int) -> None:
        raise Denied("Permission denied: user=streamer, access=READ_EXECUTE")

    sums(flink, refuse)
    flink.die()
    with pytest.raises(Conflict, match="whether anything still writes /data/orders can't be told: Permission denied"):
        flink.life.begin()
    assert len(flink.yarn.apps) == 1


def test_outputs_that_are_not_there_are_silent(flink: FlinkLife) -> None:
    flink.hdfs.delete("/data/orders", recursive=True)
    flink.die()
    assert flink.life.begin().generation == 2
