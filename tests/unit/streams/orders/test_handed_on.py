"""What a watcher saw for days reaches those who act: a checkpoint that is restored meanwhile shows older positions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict, RestartAborted
from airflow_kstream.model.streams.contract import reached_marker
from airflow_kstream.model.streams.generation import DesiredState, Position
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Note, Phase, Refuse, Wait
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers.memory import Memory
from tests.simulated.life import SPEC, Life

HERE = SPEC.checkpoints[0]
EPOCHS = f"{HERE}/epochs.json"


@pytest.fixture
def seen(life: Life) -> ReachedPositions:
    """Three batches in which only a watcher saw the stream, before its checkpoint was restored to the first one."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.reconcile()
    for _ in range(3):
        life.clock.ahead += timedelta(days=1)
        life.engine.complete_epoch(SPEC)
        reached = life.watch().progress.reached
    assert reached == ReachedPositions(1, {HERE: Position("fake", 3, 3)}, reached.claim)
    life.hdfs.files[EPOCHS] = (json.dumps(json.loads(life.hdfs.read(EPOCHS))[:2]), life.hdfs.now())
    return Memory.from_json(json.loads(json.dumps(Memory().saw(reached).to_json()))).reached


def reconcile(life: Life, seen: ReachedPositions = NOWHERE) -> int:
    return Reconciler(life.run, tell=lambda line: None).run(Mode.ENSURE, seen).generation


def test_what_the_watcher_saw_keeps_batches_from_being_written_twice(life: Life, seen: ReachedPositions) -> None:
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    with pytest.raises(Conflict, match=r"is older than it was: batch 1 is planned .* and 3 and 3 were"):
        reconcile(life, seen)
    with pytest.raises(Conflict, match="is older than it was"):
        reconcile(life)
    accept_checkpoints(life.run, "from the copy")
    assert reconcile(life, seen) == 2, "and a person decides, as ever"


def test_what_the_watcher_saw_outlives_the_process_that_it_woke(life: Life, seen: ReachedPositions) -> None:
    life.yarn.end("application_1_0001", ApplicationState.FAILED)

    def killed(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Reconciler(life.run, tell=killed).run(Mode.ENSURE, seen)
    with pytest.raises(Conflict, match="is older than it was"):
        reconcile(life)


def test_a_stream_that_runs_is_not_stopped_for_a_restart_that_could_not_follow(
    life: Life, seen: ReachedPositions
) -> None:
    life.request_restart()
    with pytest.raises(RestartAborted, match="is older than it was"):
        reconcile(life, seen)
    assert life.yarn.apps["application_1_0001"].alive


def test_what_a_supervisor_refused_is_not_forgotten_by_the_next_one(life: Life, seen: ReachedPositions) -> None:
    """The checkpoint is restored while it waits for the proof of a death; Airflow's retry is another process."""
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    newest, at = life.hdfs.files[EPOCHS]
    life.hdfs.files[EPOCHS] = (json.dumps([*json.loads(newest), life.hdfs.now().isoformat()]), at)

    def restored(line: str) -> None:
        if line.startswith("wait"):
            life.hdfs.files[EPOCHS] = (newest, at)

    with pytest.raises(Conflict, match="is older than it was"):
        Reconciler(life.run, tell=restored).run(Mode.ENSURE)
    with pytest.raises(Conflict, match="is older than it was"):
        reconcile(life)


def test_what_another_saw_during_the_same_stop_counts_for_who_was_slower_to_end_it(life: Life) -> None:
    """In between, a person restored the checkpoint, and said start."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.engine.ignores_stops = True
    life.set_desired(DesiredState.STOPPED)
    asked = life.yarn.at_request

    def meanwhile(request: str, about: str) -> None:
        if request == "kill":
            life.yarn.at_request = asked
            for _ in range(2):
                life.engine.complete_epoch(SPEC)
            assert life.reconcile().phase is Phase.STOPPED
            life.hdfs.files[EPOCHS] = (json.dumps(json.loads(life.hdfs.read(EPOCHS))[:2]), life.hdfs.now())
            life.set_desired(DesiredState.RUNNING)

    life.yarn.at_request = meanwhile
    with pytest.raises(Conflict, match=r"is older than it was: batch 1 is planned .* and 2 and 2 were"):
        reconcile(life)


@pytest.fixture
def restored(life: Life) -> Life:
    """A stream that has ended, whose supervisor noted four batches; later, a copy of two of them was restored."""
    life.begin()
    for _ in range(4):
        life.engine.complete_epoch(SPEC)
    life.reconcile()
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    life.hdfs.files[EPOCHS] = (json.dumps(json.loads(life.hdfs.read(EPOCHS))[:2]), life.hdfs.now())
    return life


@pytest.mark.parametrize("word", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_checkpoint_that_is_restored_during_a_hold_or_a_stop_is_older_after_it(
    restored: Life, word: DesiredState
) -> None:
    restored.set_desired(word)
    restored.reconcile()
    restored.set_desired(DesiredState.RUNNING)
    with pytest.raises(Conflict, match=r"is older than it was: batch 1 is planned .* and 3 and 3 were"):
        reconcile(restored)


def test_a_note_that_cannot_be_read_is_not_written_over_and_holds_up_no_stop(restored: Life) -> None:
    note = f"{restored.run.id.folder}/{reached_marker(1)}"
    restored.hdfs.files[note] = ("{", restored.hdfs.now())
    assert isinstance(restored.watch().step, Wait | Note), "it is watched all the same"
    restored.set_desired(DesiredState.STOPPED)
    assert restored.reconcile().phase is Phase.STOPPED
    assert restored.hdfs.read(note) == "{"


def test_a_dry_run_and_a_new_watcher_know_what_supervisors_noted(restored: Life) -> None:
    restored.set_desired(DesiredState.RUNNING)
    _, step = Reconciler(restored.run).plan()
    assert isinstance(step, Refuse)
    assert "is older than it was" in step.why
    verdict = restored.watch()
    assert verdict.step == step
    assert verdict.past.blocked
    assert verdict.past.blocked.why == step.why


def test_a_watcher_remembers_from_one_round_to_the_next_how_far_it_was(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    reached = life.watch().progress.reached
    assert reached == ReachedPositions(1, {HERE: Position("fake", 0, 0)}, reached.claim)
    life.hdfs.delete(EPOCHS)
    assert life.watch().progress.reached == reached


def test_what_was_seen_of_one_generation_says_nothing_of_the_next() -> None:
    ahead, behind = ({HERE: Position("q", number, number)} for number in (30, 15))
    memory = Memory().saw(ReachedPositions(1, ahead))
    assert memory.saw(ReachedPositions(1, behind)).reached == ReachedPositions(1, ahead), (
        "a watcher that has just begun"
    )
    assert memory.saw(ReachedPositions(2, behind)).reached == ReachedPositions(2, behind), (
        "a person may have wanted it so"
    )


def test_a_stream_whose_numbers_begin_again_is_not_behind() -> None:
    """Its state_dir was removed, and its checkpoint."""
    ahead, behind = ({HERE: Position("q", number, number)} for number in (30, 15))
    memory, anew = Memory().saw(ReachedPositions(1, ahead, "former")), ReachedPositions(1, behind, "new")
    assert memory.saw(anew).reached == anew
    assert Memory().saw(anew).recalls(ReachedPositions(1, ahead, "former")).reached == anew


def test_what_a_triggerer_stored_counts_beside_what_its_successor_sees() -> None:
    ahead, behind = ({HERE: Position("q", number, number)} for number in (30, 15))
    stored = ReachedPositions(2, ahead, "nonce")
    assert Memory().recalls(stored).reached == stored
    assert Memory().saw(ReachedPositions(2, behind, "nonce")).recalls(stored).reached == stored
    assert Memory().saw(stored).recalls(ReachedPositions(2, behind, "nonce")).reached == stored
    assert Memory().saw(ReachedPositions(3, behind, "next")).recalls(stored).reached.generation == 3
    assert Memory().saw(stored).recalls(NOWHERE).reached == stored


def test_a_job_does_not_follow_positions_of_another_claim_with_its_number(life: Life, seen: ReachedPositions) -> None:
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    assert reconcile(life, replace(seen, claim="that of a folder which was lost")) == 2


@pytest.mark.parametrize("data", [None, {}, {"positions": None}, {"positions": {"/a": [1]}}, {"generation": "x"}, "no"])
def test_an_event_of_another_version_is_read_as_far_as_it_goes(data: object) -> None:
    assert Memory.from_json({"wakings": 1, "reached": data}).reached == NOWHERE
