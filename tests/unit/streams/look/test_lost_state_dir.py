"""A state_dir that is gone, or back from an older copy: what runs is found by its tag and user and taken up again.

Simulated servers: a folder that goes between two looks is what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.contract import claim_file, newest_claim
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Settled
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints, adopt
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.look.observe import Prefetched, observe
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life


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


@LOSSES
def test_a_running_stream_is_left_alone_and_loudly(
    life: Life, second: Application, loss: Callable[[Life], None]
) -> None:
    loss(life)
    left = newest_claim(life.hdfs.names(life.run.id.folder))
    told: list[str] = []
    report = Reconciler(life.run, tell=told.append).run(Mode.ENSURE)
    assert (report.phase, report.job.application, report.done) == (Phase.RUNNING, second.id, ())
    command = f"`kstream streams adopt SPEC.yaml --application-id {second.id}` takes it up again"
    assert command in report.declaration.owner_doubt
    assert any(command in line for line in told)
    verdict = life.watch()
    assert verdict.step is None, "its watcher is blind, which wakes its task and is measured"
    assert command in verdict.why
    assert newest_claim(life.hdfs.names(life.run.id.folder)) == left


@LOSSES
def test_adopt_takes_it_up_under_the_number_that_its_driver_goes_by(
    life: Life, second: Application, loss: Callable[[Life], None]
) -> None:
    loss(life)
    claim = adopt(life.run, second.id)
    assert (claim.generation, claim.adoption.application) == (2, second.id)
    assert newest_claim(life.run.folder.names()) == 2, "a higher one would supersede the driver"
    report = life.reconcile()
    assert (report.phase, report.job.application, report.generation, report.declaration.owner_doubt) == (
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


def test_a_watcher_that_knew_the_lost_claim_sees_the_new_one_of_the_same_number(
    life: Life, second: Application
) -> None:
    """By the old one its fence was gone: the task was woken each minute to stop a healthy generation."""
    assert life.watch().generation == 2
    lose(life)
    adopt(life.run, second.id)
    verdict = life.watch()
    assert isinstance(verdict.step, Settled), verdict
    assert (verdict.step.phase, verdict.calls_for_action) == (Phase.RUNNING, False)


def test_a_supervisor_that_knew_the_lost_claim_sees_the_new_one_too(life: Life, second: Application) -> None:
    known = Prefetched(observe(life.run).claim)
    lose(life)
    adopt(life.run, second.id)
    claim = observe(life.run, known).claim
    assert claim
    assert claim.adoption.application == second.id


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


@pytest.mark.parametrize("planned", [True, False])
def test_no_number_is_used_again_when_its_claim_was_removed(life: Life, planned: bool) -> None:
    """As the error about an unreadable claim advises. Its markers would be the next one's: its driver's word that it
    stopped would prove that death, too. And YARN remembers only the last thousand applications."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    if planned:
        life.request_restart()
    else:
        life.yarn.end("application_1_0001", ApplicationState.FAILED)
        life.reconcile()
        life.clock.ahead += SPEC.failure.backoff
    assert life.begin().generation == 2
    life.yarn.end("application_1_0002", ApplicationState.FAILED)
    assert life.reconcile().phase is Phase.ENDED
    life.hdfs.delete(f"{life.run.id.folder}/{claim_file(2)}")
    life.yarn.apps.clear()
    with pytest.raises(Conflict, match="generation 2 has ended, and this folder has no claim of it: that was removed"):
        life.begin()
    accept_checkpoints(life.run, "its claim could not be read")
    assert life.begin().generation == 3


def test_a_stream_without_checkpoints_waits_for_a_word_too(life: Life) -> None:
    life.run = replace(life.run, spec=replace(SPEC, checkpoints=()))
    life.begin()
    lose(life)
    life.yarn.end("application_1_0001", ApplicationState.FAILED)
    with pytest.raises(Conflict, match=r"let generation 2 follow with `kstream streams accept SPEC\.yaml`"):
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
    with pytest.raises(Conflict, match=f"to keep none: `yarn application -kill {second.id}`, and it stays stopped"):
        life.reconcile()
    assert life.yarn.apps[second.id].alive
    with pytest.raises(Conflict, match="its desired state is stopped; run `kstream streams start orders` first"):
        adopt(life.run, second.id)


def test_adopt_claims_no_generation_whose_claim_was_only_not_seen_yet(life: Life, second: Application) -> None:
    """Another supervisor claimed it between the two halves of the look."""
    files = dict(life.hdfs.files)
    lose(life)

    def claimed_meanwhile(request: str, path: str) -> None:
        if request == "write" and "/.claim-" in path:
            life.hdfs.files.update(files)

    life.hdfs.at_request = claimed_meanwhile
    with pytest.raises(Conflict, match="another supervisor has it"):
        adopt(life.run, second.id)
    assert life.run.folder.claim(life.run.folder.names()) is not None


def test_a_strangers_application_is_not_taken_up(life: Life, second: Application) -> None:
    lose(life)
    life.yarn.end(second.id, ApplicationState.FAILED)
    theirs = life.yarn.start(frozenset(life.run.id.tags(9)), user="mallory")
    with pytest.raises(Conflict, match="it is a generation of a stream already"):
        adopt(life.run, theirs.id)


def test_a_stream_that_has_its_claim_is_not_taken_up_again(life: Life, second: Application) -> None:
    with pytest.raises(Conflict, match=f"the stream already runs {second.id}"):
        adopt(life.run, second.id)
