"""Where each generation of a Flink stream begins: it goes on where it was left, or nothing is started."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Submit
from airflow_kstream.model.streams.resume import NOTHING, ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec
from airflow_kstream.model.streams.submission import SubmitOutcome
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import start_from
from airflow_kstream.supervise.streams.restart.dry_run import blocked
from tests.simulated.flink import UNMAPPED, FlinkLife, metadata
from tests.simulated.life import Life


@pytest.fixture
def flink(life: Life) -> FlinkLife:
    return FlinkLife(life)


@pytest.fixture
def begun(flink: FlinkLife) -> FlinkLife:
    """A stream whose first generation was started fresh by a person's word."""
    start_from(flink.life.run, "a new stream", fresh=True)
    flink.life.begin()
    return flink


def again(flink: FlinkLife) -> None:
    """Start its next generation, whatever the pace of failures is."""
    flink.life.set_desired(DesiredState.RUNNING)
    flink.life.begin()


def test_nobody_starts_the_first_generation_with_nothing_unless_a_person_says_so(flink: FlinkLife) -> None:
    with pytest.raises(Conflict, match="nobody said where its first generation starts"):
        flink.life.begin()
    assert not flink.yarn.apps
    start_from(flink.life.run, "a new stream", fresh=True)
    assert flink.life.begin().phase is Phase.RUNNING
    assert (flink.engine.resumed, flink.claim.start.resume) == ([""], NOTHING)


def test_a_dry_run_says_what_the_first_generation_lacks(flink: FlinkLife) -> None:
    first = Submit(1, "its first generation")
    (why,) = blocked(flink.life.run, observe(flink.life.run), first)
    assert "nobody said where its first generation starts" in why
    start_from(flink.life.run, "a new stream", fresh=True)
    assert blocked(flink.life.run, observe(flink.life.run), first) == ()


def test_a_dry_run_says_what_a_later_generation_lacks_and_closes_nothing(begun: FlinkLife) -> None:
    begun.complete(1)
    begun.die()
    again(begun)
    begun.die()
    successor = Submit(3, "it died")
    assert blocked(begun.life.run, observe(begun.life.run), successor) == ()
    begun.hdfs.delete(begun.engine.resumed[-1], recursive=True)
    (why,) = blocked(begun.life.run, observe(begun.life.run), successor)
    assert "gone" in why
    assert begun.folder not in begun.hdfs.modes


def test_the_first_generation_begins_with_the_savepoint_that_a_person_names(flink: FlinkLife) -> None:
    flink.hdfs.write("/old/savepoint-7/_metadata", metadata(7))
    start_from(flink.life.run, "moved here", path="/old/savepoint-7", drops_unmapped=True)
    flink.life.begin()
    assert flink.engine.resumed == ["/old/savepoint-7"]
    assert flink.claim.start.resume == ResumePoint("/old/savepoint-7", 7, drops_unmapped=True)
    assert flink.claim.positions["/flink/orders"].offset == 7


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/old/nowhere", "has no _metadata"),
        ("/old/other", "none of Flink's"),
        ("hdfs://elsewhere/old/savepoint-7", "is not on"),
        ("savepoint-7", "is not on"),
    ],
)
def test_a_person_can_name_nothing_with_which_no_job_can_begin(flink: FlinkLife, path: str, why: str) -> None:
    flink.hdfs.write("/old/other/_metadata", "something else, and long enough")
    with pytest.raises(InvalidInput, match=why):
        start_from(flink.life.run, "moved here", path=path)


def test_nobody_says_where_a_stream_starts_while_it_runs(begun: FlinkLife) -> None:
    with pytest.raises(Conflict, match="stop the stream first"):
        start_from(begun.life.run, "back", fresh=True)


def test_a_killed_job_is_followed_from_its_newest_complete_checkpoint(begun: FlinkLife) -> None:
    begun.complete(1, 2, 3)
    begun.hdfs.make_folder(f"{begun.folder}/chk-4")
    folder = begun.folder
    begun.die()
    again(begun)
    assert begun.engine.resumed[-1] == f"{folder}/chk-3"
    assert begun.claim.start.resume == ResumePoint(f"{folder}/chk-3", 3, made_by=1)


def test_a_dead_job_is_closed_before_anybody_reads_where_it_was_left(begun: FlinkLife) -> None:
    begun.complete(1)
    begun.hdfs.make_folder(f"{begun.folder}/chk-2")
    folder = begun.folder
    begun.die()
    again(begun)
    assert (begun.hdfs.modes[folder], begun.hdfs.modes[f"{folder}/chk-2"]) == ("555", "555")
    assert f"{folder}/chk-1" not in begun.hdfs.modes


def test_a_dead_job_completes_no_savepoint_that_it_had_begun(begun: FlinkLife) -> None:
    begun.complete(1)
    saved, saving = begun.save(2), f"/flink/orders/savepoints/{begun.job}/savepoint-3"
    begun.hdfs.make_folder(saving)
    begun.die()
    again(begun)
    assert (begun.engine.resumed[-1], begun.hdfs.modes[saving]) == (saved, "555")
    assert saved not in begun.hdfs.modes


def test_a_dead_job_that_finds_its_stop_marker_late_can_begin_no_savepoint(begun: FlinkLife) -> None:
    begun.complete(1)
    folder = f"/flink/orders/savepoints/{begun.job}"
    begun.die()
    again(begun)
    assert begun.hdfs.modes[folder] == "555"


def test_a_dead_job_that_had_made_a_savepoint_can_begin_no_other_one(begun: FlinkLife) -> None:
    """A job that a person has save its state and go on has made the folder itself, open."""
    begun.complete(1)
    begun.save(2)
    begun.complete(3)
    folder = f"/flink/orders/savepoints/{begun.job}"
    begun.hdfs.make_folder(folder, "755")
    begun.die()
    again(begun)
    assert begun.hdfs.modes[folder] == "555"


def test_what_a_stranger_begins_among_the_savepoints_hinders_no_start(begun: FlinkLife) -> None:
    begun.complete(1)
    left, strange = f"{begun.folder}/chk-1", f"/flink/orders/savepoints/{begun.job}/savepoint-9"
    with begun.hdfs.as_user("stranger"):
        begun.hdfs.make_folder(strange)
    begun.die()
    again(begun)
    assert begun.engine.resumed[-1] == left


def test_what_a_dead_job_completes_just_before_it_is_closed_is_followed(begun: FlinkLife) -> None:
    """A process of it that nobody saw still lives."""
    begun.complete(1)
    folder = begun.folder
    begun.die()

    def complete(request: str, path: str) -> None:
        if (request, path) == ("mode", folder):
            begun.hdfs.write(f"{folder}/chk-2/_metadata", metadata(2))

    begun.hdfs.at_request = complete
    again(begun)
    assert begun.engine.resumed[-1] == f"{folder}/chk-2"


def test_a_job_that_runs_is_never_closed(begun: FlinkLife) -> None:
    begun.complete(1)
    for _ in range(3):
        begun.life.reconcile(Mode.WATCH)
        begun.life.clock.ahead += timedelta(hours=1)
    begun.complete(2)
    assert begun.folder not in begun.hdfs.modes


def test_a_savepoint_counts_by_its_number_among_checkpoints(begun: FlinkLife) -> None:
    begun.complete(1, 2)
    saved = begun.save(3)
    begun.die()
    again(begun)
    assert begun.engine.resumed[-1] == saved
    older = begun.save(4)
    begun.complete(5)
    folder = begun.folder
    begun.die()
    again(begun)
    assert begun.engine.resumed[-1] == f"{folder}/chk-5" != older


def test_a_savepoint_is_no_position_once_a_later_checkpoint_is_complete(begun: FlinkLife) -> None:
    begun.complete(1)
    begun.save(2)
    begun.complete(3)
    begun.die()
    assert observe(begun.life.run).checkpoints[0].position.commit == 3


def test_a_generation_that_completed_nothing_is_followed_from_where_it_began(begun: FlinkLife) -> None:
    begun.complete(1, 2)
    begun.die()
    again(begun)
    left = begun.engine.resumed[-1]
    for _ in range(2):
        begun.die()
        again(begun)
    assert begun.engine.resumed[-2:] == [left, left]
    assert (begun.claim.generation, begun.claim.start.resume) == (4, ResumePoint(left, 2, made_by=1))


def test_a_fresh_job_that_completed_nothing_may_begin_fresh_again(begun: FlinkLife) -> None:
    begun.die()
    again(begun)
    assert begun.engine.resumed == ["", ""]


def test_nothing_is_started_from_nothing_when_the_position_is_gone(begun: FlinkLife) -> None:
    begun.complete(1, 2)
    begun.life.reconcile()
    begun.life.set_desired(DesiredState.STOPPED)
    begun.life.reconcile()
    begun.hdfs.delete(begun.folder, recursive=True)
    with pytest.raises(Conflict, match="gone"):
        again(begun)
    assert len(begun.yarn.apps) == 1


def test_what_a_generation_began_with_is_missed_when_it_is_gone(begun: FlinkLife) -> None:
    begun.complete(1, 2)
    begun.die()
    again(begun)
    begun.die()
    begun.hdfs.delete(begun.engine.resumed[-1], recursive=True)
    with pytest.raises(Conflict, match="gone"):
        again(begun)
    start_from(begun.life.run, "from an older one", fresh=True)
    begun.life.begin()
    assert begun.engine.resumed[-1] == ""


def test_an_older_state_that_a_person_names_is_the_new_position(begun: FlinkLife) -> None:
    begun.complete(40, 41)
    begun.life.reconcile()
    folder = begun.folder
    begun.life.set_desired(DesiredState.STOPPED)
    begun.life.reconcile()
    begun.hdfs.write("/old/savepoint-7/_metadata", metadata(7))
    start_from(begun.life.run, "a bug since yesterday", path="/old/savepoint-7")
    begun.life.begin()
    assert begun.engine.resumed[-1] == "/old/savepoint-7"
    begun.complete(8)
    begun.die()
    again(begun)
    assert begun.engine.resumed[-1].endswith("/chk-8")
    assert not begun.engine.resumed[-1].startswith(folder)


def test_the_right_to_drop_state_is_no_word_on_where_it_starts(begun: FlinkLife) -> None:
    begun.complete(1)
    left = f"{begun.folder}/chk-1"
    begun.die()
    begun.life.set_desired(DesiredState.STOPPED)
    begun.life.reconcile()
    start_from(begun.life.run, "an operator is gone", drops_unmapped=True)
    begun.life.begin()
    assert begun.claim.start.resume == ResumePoint(left, 1, made_by=1, drops_unmapped=True)
    begun.complete(2)
    begun.life.reconcile()
    begun.life.set_desired(DesiredState.STOPPED)
    begun.life.reconcile()
    begun.hdfs.delete(begun.folder, recursive=True)
    start_from(begun.life.run, "another is gone", drops_unmapped=True)
    with pytest.raises(Conflict, match="is older than it was"):
        begun.life.begin()
    assert len(begun.yarn.apps) == 2


def test_a_word_holds_for_one_generation(begun: FlinkLife) -> None:
    """Nobody takes it back: the last order is still the one to begin with nothing."""
    begun.complete(1)
    begun.die()
    begun.life.clock.ahead += timedelta(hours=1)
    begun.life.begin()
    assert begun.engine.resumed[-1].endswith("/chk-1")


def test_a_later_order_takes_a_word_back(flink: FlinkLife) -> None:
    start_from(flink.life.run, "a new stream", fresh=True)
    flink.life.set_desired(DesiredState.RUNNING)
    with pytest.raises(Conflict, match="nobody said"):
        flink.life.begin()


def test_the_next_generation_begins_with_the_savepoint_of_a_stop(begun: FlinkLife) -> None:
    begun.complete(1, 2)
    begun.obeys_its_marker(3)
    saved = f"/flink/orders/savepoints/{begun.job}/savepoint-3"
    begun.life.request_restart()
    report = begun.life.reconcile()
    assert f"it stopped with savepoint {saved}" in "; ".join(action.what for action in report.done)
    assert begun.engine.resumed[-1] == saved
    assert (begun.claim.generation, begun.claim.positions["/flink/orders"].offset) == (2, 3)


def test_a_job_that_obeys_no_marker_is_killed_and_its_checkpoints_stay(begun: FlinkLife) -> None:
    begun.complete(1, 2)
    folder = begun.folder
    begun.life.request_restart()
    report = begun.life.reconcile()
    assert "it was killed" in "; ".join(action.what for action in report.done)
    assert begun.engine.resumed[-1] == f"{folder}/chk-2"


def test_a_queue_without_room_costs_no_restart(begun: FlinkLife) -> None:
    begun.complete(1)
    left = f"{begun.folder}/chk-1"
    begun.die()
    begun.engine.ends = [SubmitOutcome(None, "", withdrawn=True)] * 3
    again(begun)
    assert (begun.claim.generation, begun.engine.resumed[-4:]) == (5, [left] * 4)
    assert begun.application.state is ApplicationState.RUNNING
    # The first one's death took that long to prove. Nothing of the others ever ran.
    assert begun.life.clock.ahead < timedelta(minutes=41)
    seen = begun.life.reconcile(Mode.WATCH)
    assert seen.phase is Phase.RUNNING


def test_a_changed_checkpoints_folder_begins_where_the_old_one_was_left(begun: FlinkLife) -> None:
    begun.complete(1)
    left = f"{begun.folder}/chk-1"
    begun.die()
    begun.hdfs.make_folder("/flink/orders2")
    begun.reopen(replace(begun.spec, checkpoints=("/flink/orders2",)))
    again(begun)
    assert begun.engine.resumed[-1] == left


def test_what_may_not_be_closed_is_not_followed(begun: FlinkLife) -> None:
    begun.complete(1)
    begun.hdfs.owners[begun.folder] = "somebody"
    begun.die()
    with pytest.raises(Denied, match="not the owner") as refused:
        again(begun)
    assert f"`hdfs dfs -chmod 555 {begun.folder}`" in refused.value.message
    assert "`kstream streams start orders --resume PATH`" in refused.value.message
    assert len(begun.yarn.apps) == 1
    left = f"{begun.folder}/chk-1"
    start_from(begun.life.run, "its owner closed it", path=left)
    begun.life.begin()
    assert begun.engine.resumed[-1] == left


def test_what_a_stranger_puts_among_the_checkpoints_is_no_state(begun: FlinkLife) -> None:
    begun.complete(1)
    with begun.hdfs.as_user("stranger"):
        for path in (f"{begun.folder}/chk-99", f"/flink/orders/savepoints/{begun.job}/savepoint-98"):
            begun.hdfs.write(f"{path}/_metadata", metadata(99))
    left = f"{begun.folder}/chk-1"
    begun.die()
    again(begun)
    assert begun.engine.resumed[-1] == left


def forgotten(flink: FlinkLife) -> None:
    """Let YARN forget the stream's applications, as a ResourceManager does that starts without a store."""
    flink.die()
    flink.yarn.apps.clear()


def test_a_state_of_a_former_user_is_not_skipped_for_an_older_one(begun: FlinkLife) -> None:
    """The stream runs as another user now, and YARN has forgotten as whom it ran."""
    begun.complete(1)
    begun.die()
    again(begun)
    begun.complete(2)
    left = f"{begun.folder}/chk-2"
    begun.hdfs.owners[f"{left}/_metadata"] = "former"
    forgotten(begun)
    with pytest.raises(Conflict, match=f"generation 2 left {left}") as refused:
        again(begun)
    assert "--resume PATH" in refused.value.message
    start_from(begun.life.run, "an operator is gone", drops_unmapped=True)
    with pytest.raises(Conflict, match=f"generation 2 left {left}"):
        begun.life.begin()
    assert not begun.yarn.apps
    start_from(begun.life.run, "it is ours", path=left)
    begun.life.begin()
    assert begun.engine.resumed[-1] == left


def test_a_generation_whose_spec_nobody_can_read_is_not_passed_over(begun: FlinkLife) -> None:
    begun.complete(1)
    begun.die()
    again(begun)
    begun.complete(2)
    file = f"{begun.life.run.id.folder}/gen-000002"
    claim = json.loads(begun.hdfs.read(file))
    claim |= {"spec": {"engine": "flink", "of": "a later release"}, "spec_fingerprint": "unknown"}
    begun.hdfs.write(file, json.dumps(claim), overwrite=True)
    begun.die()
    with pytest.raises(Conflict, match="where generation 2 was left can't be told"):
        again(begun)
    assert len(begun.yarn.apps) == 2


def test_a_watcher_that_may_not_read_a_savepoint_looks_all_the_same(begun: FlinkLife) -> None:
    begun.complete(1)
    begun.obeys_its_marker(2)
    begun.life.set_desired(DesiredState.STOPPED)
    begun.life.reconcile()
    assert observe(begun.life.run).checkpoints[0].position.commit == 2

    def refuse(request: str, path: str) -> None:
        if request == "read" and path.endswith("_metadata"):
            raise Denied("Permission denied", tried=f"read {path}")

    begun.hdfs.at_request = refuse
    assert observe(begun.life.run).desired.state is DesiredState.STOPPED


def test_a_state_that_the_job_has_no_place_for_is_tried_once(flink: FlinkLife) -> None:
    flink.hdfs.write("/old/savepoint-7/_metadata", metadata(7))
    start_from(flink.life.run, "moved here", path="/old/savepoint-7")
    flink.life.begin()
    flink.life.clock.ahead += timedelta(minutes=1)
    flink.die(diagnostics=UNMAPPED)
    for _ in range(3):
        assert flink.life.reconcile(Mode.ENSURE).phase is Phase.BACKING_OFF
        flink.life.clock.ahead += timedelta(hours=12)
    assert len(flink.yarn.apps) == 1
    start_from(flink.life.run, "that operator is gone", drops_unmapped=True)
    flink.life.begin()
    assert flink.claim.start.resume == ResumePoint("/old/savepoint-7", 7, drops_unmapped=True)


def test_a_changed_job_without_a_place_for_the_state_goes_back_to_the_former_one(begun: FlinkLife) -> None:
    """Both begin with what the former job left."""
    begun.complete(1)
    left, former = f"{begun.folder}/chk-1", begun.spec.application
    begun.life.reconcile()
    begun.hdfs.write("hdfs:///apps/without.jar", "PK")
    begun.reopen(replace(begun.spec, application="hdfs:///apps/without.jar"))
    begun.life.request_restart()
    begun.life.reconcile()
    assert begun.engine.resumed[-1] == left
    begun.die(diagnostics=UNMAPPED)
    begun.life.begin()
    spec = begun.claim.spec
    assert isinstance(spec, FlinkStreamSpec)
    assert (begun.claim.generation, spec.application, begun.engine.resumed[-1]) == (3, former, left)
