"""A state_dir that is gone, or back from an older copy: what runs is found by its tag and user and taken up again.

Simulated servers: a folder that goes between two looks is what is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

import pytest

from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.contract import newest_claim
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.plan import Phase
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.accept import accept_checkpoints
from airflow_kstream.supervise.streams.adopt import adopt
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.take_over import take_over
from tests.unit.streams.life import SPEC, Life


def lose(life: Life) -> None:
    life.hdfs.delete(life.run.id.folder, recursive=True)


def restore_an_older_copy(life: Life) -> None:
    """The copy was made while generation 1 ran; its person's words of then come back, too."""
    folder = life.run.id.folder
    for name in life.hdfs.names(folder):
        if name.startswith(("gen-000002", "fence-000002")):
            life.hdfs.delete(f"{folder}/{name}")


@pytest.fixture
def second(life: Life) -> Application:
    """The second generation, with commits behind it."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.request_restart()
    assert life.reconcile().generation == 2
    life.engine.complete_epoch(SPEC)
    return life.yarn.apps["application_1_0002"]


LOSSES = pytest.mark.parametrize("loss", [lose, restore_an_older_copy])


def test_a_running_stream_without_a_folder_is_left_alone_and_loudly(life: Life, second: Application) -> None:
    lose(life)
    told: list[str] = []
    report = Reconciler(life.run, tell=told.append).run(Mode.ENSURE)
    assert (report.phase, report.application, report.done) == (Phase.RUNNING, second.id, ())
    command = f"`kstream streams adopt SPEC.yaml --application-id {second.id}` takes it up again"
    assert command in report.owner_doubt
    assert any(command in line for line in told)
    verdict = life.watch()
    assert verdict.step is None, "its watcher is blind, which wakes its task and is measured"
    assert command in verdict.why
    assert newest_claim(life.hdfs.names(life.run.id.folder)) == 0


def test_a_running_stream_of_an_older_copy_is_left_alone_and_loudly(life: Life, second: Application) -> None:
    restore_an_older_copy(life)
    with pytest.raises(Conflict, match=f"adopt SPEC.yaml --application-id {second.id}` takes it up again"):
        life.begin()
    assert life.yarn.apps[second.id].alive


@LOSSES
def test_adopt_takes_it_up_under_the_number_that_its_driver_goes_by(
    life: Life, second: Application, loss: Callable[[Life], None]
) -> None:
    loss(life)
    claim = adopt(life.run, second.id)
    assert (claim.generation, claim.adopted) == (2, second.id)
    assert newest_claim(life.run.folder.names()) == 2, "a higher one would supersede the driver"
    report = life.reconcile()
    assert (report.phase, report.application, report.generation, report.owner_doubt) == (
        Phase.RUNNING,
        second.id,
        2,
        "",
    )
    assert report.horizon
    assert report.horizon.hard
    assert life.watch().generation == 2
    life.request_restart()
    assert life.reconcile().generation == 3
    assert not life.yarn.apps[second.id].alive


@LOSSES
def test_nothing_follows_what_has_ended_without_a_word(
    life: Life, second: Application, loss: Callable[[Life], None]
) -> None:
    loss(life)
    life.yarn.end(second.id, ApplicationState.FAILED)
    for mode in Mode:
        with pytest.raises(Conflict):
            life.reconcile(mode)
    with pytest.raises(Conflict, match="it ended as FAILED"):
        adopt(life.run, second.id)
    assert len(life.yarn.apps) == 2
    if loss is lose:
        take_over(life.run, "looked at", tell=lambda line: None)
    else:
        accept_checkpoints(life.run, "looked at")
    assert life.begin().generation == 3


def test_a_stream_without_checkpoints_waits_for_a_word_too(life: Life) -> None:
    life.run = replace(life.run, spec=replace(SPEC, checkpoints=()))
    life.begin()
    lose(life)
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    with pytest.raises(Conflict, match="let generation 2 follow with `kstream streams accept`"):
        life.begin()
    accept_checkpoints(life.run, "looked at")
    assert life.begin().generation == 2


def test_a_person_may_stop_what_nobody_claimed(life: Life, second: Application) -> None:
    lose(life)
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    assert not life.yarn.apps[second.id].alive


def test_a_word_of_an_older_copy_stops_nothing(life: Life, second: Application) -> None:
    life.set_desired(DesiredState.STOPPED)
    restore_an_older_copy(life)
    with pytest.raises(Conflict, match="left alone"):
        life.reconcile()
    assert life.yarn.apps[second.id].alive
    with pytest.raises(Conflict, match="its desired state is stopped; run `kstream streams start orders` first"):
        adopt(life.run, second.id)


def test_adopt_claims_no_generation_whose_claim_was_only_not_seen_yet(
    life: Life, second: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another supervisor claimed it between the two halves of the look."""
    files = dict(life.hdfs.files)
    lose(life)
    claims = life.run.folder.claim
    monkeypatch.setattr(type(life.run.folder), "make_claim", restoring(life, files))
    with pytest.raises(Conflict, match="another supervisor has it"):
        adopt(life.run, second.id)
    assert claims(life.run.folder.names()) is not None


def restoring(life: Life, files: Mapping[str, tuple[str, datetime]]) -> Callable[..., object]:
    make_claim = type(life.run.folder).make_claim

    def made(folder: object, draft: object) -> object:
        life.hdfs.files.update(files)
        return make_claim(folder, draft)  # type: ignore[arg-type]

    return made


def test_a_strangers_application_is_not_taken_up(life: Life, second: Application) -> None:
    lose(life)
    life.yarn.end(second.id, ApplicationState.FAILED)
    theirs = life.yarn.start(frozenset(life.run.id.tags(9)), user="mallory")
    with pytest.raises(Conflict, match="it is a generation of a stream already"):
        adopt(life.run, theirs.id)


def test_a_stream_that_has_its_claim_is_not_taken_up_again(life: Life, second: Application) -> None:
    with pytest.raises(Conflict, match=f"the stream already runs {second.id}"):
        adopt(life.run, second.id)
