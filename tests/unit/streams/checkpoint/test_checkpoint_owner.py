"""A checkpoint has one owner, whatever the state_dir and the installation of those who want it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.errors import Conflict, InvalidInput, RestartAborted, Unavailable
from airflow_kstream.model.streams.checkpoint_owner import Owner
from airflow_kstream.model.streams.contract import fence_name
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.interrupted import (
    COPY,
    HERE,
    RECORD,
    SPEC,
    US,
    Interrupted,
    alive,
    give,
    hdfs,
    owner,
    rewrite,
    subject,
    supervise,
)
from tests.simulated.life import Life
from tests.simulated.servers import ONE_WEEK, SimHdfs


def stop(run: StreamRun) -> None:
    set_desired(run, DesiredState.STOPPED, "test")
    assert supervise(run).phase is Phase.STOPPED


def entries(hdfs: SimHdfs) -> list[str]:
    return sorted(name.removeprefix(RECORD) for name in hdfs.files if name.startswith(RECORD))


__all__ = ["hdfs"]


class TestOneOwner:
    """What another stream on the same checkpoint gets to hear."""

    def test_a_submission_takes_it_once_and_later_looks_change_nothing(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        assert entries(hdfs) == ["owner-000001"]
        life.engine.complete_epoch(SPEC)
        for mode in Mode:
            supervise(life.run, mode)
        life.request_restart()
        assert supervise(life.run).generation == 2
        assert entries(hdfs) == ["owner-000001"]

    @pytest.mark.parametrize(("copy", "state_dir"), [(COPY, "/kstream"), (COPY, "/elsewhere"), (SPEC, "/elsewhere")])
    def test_a_copied_declaration_is_refused_with_the_ways_out(
        self, life: Life, hdfs: Interrupted, copy: StreamSpec, state_dir: str
    ) -> None:
        supervise(life.run)
        with pytest.raises(Conflict) as refused:
            supervise(subject(life, copy, state_dir))
        for words in (
            f"{HERE} belongs to stream orders of state_dir /kstream on hdfs://simulated since 20",
            "`kstream streams stop orders` with a connection to that state_dir releases it",
            "`kstream streams take-over SPEC.yaml` takes the checkpoint over",
        ):
            assert words in str(refused.value)
        assert len(alive(life)) == 1

    def test_one_that_should_be_stopped_but_runs_keeps_its_checkpoint(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        life.set_desired(DesiredState.STOPPED)
        with pytest.raises(Conflict, match="belongs to stream orders"):
            supervise(subject(life, COPY))

    def test_one_that_ended_by_itself_keeps_its_checkpoint(self, life: Life, hdfs: Interrupted) -> None:
        application = supervise(life.run).job.application
        life.yarn.end(str(application))
        assert supervise(life.run, Mode.WATCH).phase is Phase.ENDED
        with pytest.raises(Conflict, match="belongs to stream orders"):
            supervise(subject(life, COPY))

    def test_a_running_stream_is_not_stopped_for_a_declaration_with_anothers_checkpoint(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        supervise(life.run)
        other = replace(COPY, checkpoints=("/data/copy/checkpoint",))
        supervise(subject(life, other))
        greedy = replace(other, checkpoints=(HERE,), on_change=OnChange.RESTART)
        with pytest.raises(RestartAborted, match=r"belongs to stream orders .*; the current generation keeps running"):
            supervise(subject(life, greedy), Mode.WATCH)
        assert len(alive(life)) == 2

    def test_not_even_a_forced_restart_goes_to_anothers_checkpoint(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        other = replace(COPY, checkpoints=("/data/copy/checkpoint",))
        supervise(subject(life, other))
        life.clock.ahead += ONE_WEEK - timedelta(minutes=30)
        with pytest.raises(RestartAborted, match="belongs to stream orders"):
            supervise(subject(life, replace(other, checkpoints=(HERE,))), Mode.WATCH)
        assert len(alive(life)) == 2

    def test_an_application_on_anothers_checkpoint_is_not_adopted(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        theirs = life.yarn.start(frozenset({"by-hand"}))
        with pytest.raises(Conflict, match="belongs to stream orders"):
            adopt(subject(life, COPY), theirs.id)

    def test_a_stream_that_cannot_have_all_of_its_checkpoints_keeps_none(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        greedy = replace(COPY, checkpoints=("/data/a", HERE))
        with pytest.raises(Conflict, match="belongs to stream orders"):
            supervise(subject(life, greedy))
        assert owner(life.run, "/data/a") is None


class TestDataWithoutOwner:
    """A checkpoint whose data nobody has given to the stream."""

    def test_the_first_generation_is_refused_on_data_of_nobody(self, life: Life, hdfs: Interrupted) -> None:
        life.engine.complete_epoch(SPEC)
        life.clock.ahead += timedelta(days=30)
        with pytest.raises(Conflict) as refused:
            supervise(life.run)
        assert f"{HERE} has no owner and holds data up to batch 0, which moved last at 20" in str(refused.value)
        assert "`kstream streams adopt SPEC.yaml --application-id ID`" in str(refused.value)
        assert "`kstream streams take-over SPEC.yaml`" in str(refused.value)
        assert (alive(life), entries(hdfs)) == ([], [])
        assert life.run.folder.names() == frozenset()

    def test_a_stream_that_was_claimed_before_takes_its_checkpoint_at_the_next_look(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        hdfs.delete(RECORD.rstrip("/"), recursive=True)
        report = supervise(life.run, Mode.WATCH)
        assert [done.what for done in report.done] == [f"owns {HERE}"]
        with pytest.raises(Conflict, match="belongs to stream orders"):
            supervise(subject(life, COPY))

    def test_a_declaration_that_moves_to_data_of_nobody_is_refused(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        moved = replace(SPEC, checkpoints=("/data/moved",), on_change=OnChange.RESTART)
        life.engine.complete_epoch(moved)
        with pytest.raises(RestartAborted, match="/data/moved has no owner and holds data"):
            supervise(subject(life, moved))
        assert len(alive(life)) == 1

    def test_a_stream_that_lost_its_state_dir_waits_for_a_word(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        hdfs.delete(life.run.id.folder, recursive=True)
        life.yarn.apps.clear()
        with pytest.raises(Conflict, match="has this stream as its owner, but state_dir has no claim of it"):
            supervise(life.run)

    def test_a_supervisor_that_died_before_its_claim_is_followed_by_the_next(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        def die(target: str) -> None:
            if "/owner-" in target:
                raise KeyboardInterrupt

        hdfs.renamed = die
        with pytest.raises(KeyboardInterrupt):
            supervise(life.run)
        assert owner(life.run)
        assert life.run.folder.claim(life.run.folder.names()) is None
        hdfs.renamed = lambda target: None
        assert supervise(life.run).phase is Phase.RUNNING

    def test_an_application_of_nobody_is_adopted_with_its_data(self, life: Life, hdfs: Interrupted) -> None:
        life.engine.complete_epoch(SPEC)
        theirs = life.yarn.start(frozenset({"by-hand"}))
        adopt(life.run, theirs.id)
        assert supervise(life.run).job.application == theirs.id
        words = [json.loads(hdfs.files[f"{RECORD}owner-00000{number}"][0]) for number in (1, 2)]
        assert [(entry["word"], entry["reason"]) for entry in words] == [
            ("adopt", f"adopted {theirs.id}"),
            ("", "claimed after the word: adopt"),
        ]

    def test_the_word_for_an_adopted_application_ends_with_its_claim(self, life: Life, hdfs: Interrupted) -> None:
        """Its application carries no tags: without the claim nobody sees it."""
        life.engine.complete_epoch(SPEC)
        adopt(life.run, life.yarn.start(frozenset({"by-hand"})).id)
        hdfs.delete(life.run.id.folder, recursive=True)
        life.clock.ahead += timedelta(days=1)
        with pytest.raises(Conflict, match="state_dir has no claim of it"):
            supervise(life.run)


class TestRelease:
    """The end of an ownership."""

    def test_a_stop_releases_it_and_the_same_stream_starts_again(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        stop(life.run)
        assert owner(life.run) is None
        with pytest.raises(Conflict, match=r"was released by stream orders .* and holds data"):
            supervise(subject(life, COPY))
        life.set_desired(DesiredState.RUNNING)
        assert supervise(life.run).generation == 2
        assert owner(life.run) is not None

    def test_a_repeated_stop_writes_nothing(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        stop(life.run)
        before = entries(hdfs)
        stop(life.run)
        assert entries(hdfs) == before == ["owner-000001", "owner-000002"]

    def test_a_changed_declaration_gives_the_old_checkpoint_up(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        moved = subject(life, replace(SPEC, checkpoints=("/data/moved",), on_change=OnChange.RESTART))
        assert supervise(moved).generation == 2
        assert owner(moved, "/data/moved") is not None
        assert owner(moved, HERE) is None


class TestTrouble:
    """What a lost, a foreign and a broken record do to a healthy job."""

    def test_a_record_that_is_deleted_with_its_checkpoint_is_written_again(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        hdfs.delete(HERE, recursive=True)
        supervise(life.run)
        assert owner(life.run) is not None

    def test_a_restored_record_of_another_stream_stops_nothing_and_is_reported(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        supervise(life.run)
        rewrite(hdfs, stream="former")
        report = supervise(life.run)
        assert (report.phase, len(alive(life))) == (Phase.RUNNING, 1)
        assert "belongs to stream former" in report.declaration.owner_doubt
        life.request_restart()
        with pytest.raises(RestartAborted, match="belongs to stream former"):
            supervise(life.run)
        assert len(alive(life)) == 1

    def test_a_broken_record_stops_nothing_and_is_reported(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        hdfs.write(f"{RECORD}owner-000001", "[]", overwrite=True)
        assert "owner-000001 of streamer can't be understood" in supervise(life.run).declaration.owner_doubt
        with pytest.raises(InvalidInput, match="nothing is submitted to this checkpoint until somebody has repaired"):
            supervise(subject(life, COPY))

    def test_a_record_of_a_newer_version_is_left_alone(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        rewrite(hdfs, version=2, shape="new")
        assert "by a newer version of this program" in supervise(life.run).declaration.owner_doubt
        stop(life.run)
        assert entries(hdfs) == ["owner-000001"]

    def test_a_stream_that_a_newer_program_claimed_is_neither_owned_nor_released(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        supervise(life.run)
        claim = f"{life.run.id.folder}/gen-000001"
        hdfs.write(claim, json.dumps(json.loads(hdfs.read(claim)) | {"version": 99}), overwrite=True)
        hdfs.delete(RECORD.rstrip("/"), recursive=True)
        assert supervise(life.run).phase is Phase.RUNNING
        assert entries(hdfs) == []
        give(life.run, US)
        life.yarn.end("application_1_0001")
        stop(life.run)
        assert owner(life.run) == US

    def test_a_claimed_checkpoint_on_another_filesystem_is_left_alone(self, life: Life, hdfs: Interrupted) -> None:
        """Its path is looked for on none of our NameNodes: a folder of the same name there is another one."""
        elsewhere = replace(SPEC, checkpoints=("hdfs://other/data/cp",))
        supervise(life.run)
        claim = f"{life.run.id.folder}/gen-000001"
        hdfs.write(claim, json.dumps(json.loads(hdfs.read(claim)) | {"spec": elsewhere.to_mapping()}), overwrite=True)
        supervise(life.run)
        stop(subject(life, SPEC))
        assert not any(name.startswith("/data/cp") for name in hdfs.files)
        run = subject(life, elsewhere)
        assert SparkEngine().progress(run.session, elsewhere, Newest())[0].position.offset == -1

    def test_a_filesystem_that_gets_another_name_keeps_its_owners(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        life.request_restart()
        assert supervise(subject(life, SPEC, filesystem="hdfs://nameservice")).generation == 2

    def test_a_lost_reply_to_the_rename_is_recognised_as_success(self, life: Life, hdfs: Interrupted) -> None:
        def lose_the_reply(target: str) -> None:
            raise Unavailable("the reply was lost")

        hdfs.renamed = lose_the_reply
        give(life.run, US)
        assert owner(life.run) == US
        assert entries(hdfs) == ["owner-000001"]

    def test_a_rename_that_only_says_that_it_succeeded_makes_nobody_the_owner(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        """HttpFS ignores the rename's options and answers 200 with false."""
        give(life.run, Owner("former", "/elsewhere", "hdfs://simulated"))
        hdfs.ignores_options = True
        with pytest.raises(Conflict, match="changed meanwhile"):
            give(life.run, US)

    def test_drafts_of_crashed_writers_and_old_entries_are_removed(self, life: Life, hdfs: Interrupted) -> None:
        hdfs.write(f"{RECORD}.owner-crashed", "{}")
        life.clock.ahead += timedelta(days=2)
        for _ in range(8):
            life.set_desired(DesiredState.RUNNING)
            supervise(life.run)
            stop(life.run)
        assert entries(hdfs) == [f"owner-{number:06d}" for number in range(7, 17)]

    def test_a_submitter_that_lost_the_checkpoint_after_its_claim_submits_nothing(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        def lose_the_checkpoint(target: str) -> None:
            if "gen-" in target:
                hdfs.renamed = lambda target: None
                give(life.run, Owner("copy", "/elsewhere", "hdfs://simulated"))

        hdfs.renamed = lose_the_checkpoint
        with pytest.raises(Conflict, match="has got another owner meanwhile"):
            supervise(life.run)
        claim = life.run.folder.claim(life.run.folder.names())
        assert claim is not None
        assert fence_name(1, claim.nonce) not in life.run.folder.names()
        assert alive(life) == []


def test_the_first_start_costs_the_same_beside_ten_other_streams(life: Life, hdfs: Interrupted) -> None:
    supervise(subject(life, replace(SPEC, name="first", checkpoints=("/data/first",))))
    hdfs.asked = 0
    supervise(life.run)
    alone = hdfs.asked
    for number in range(10):
        supervise(subject(life, replace(SPEC, name=f"other-{number}", checkpoints=(f"/data/other-{number}",))))
    hdfs.asked = 0
    supervise(subject(life, replace(COPY, checkpoints=("/data/copy/checkpoint",))))
    assert hdfs.asked == alone
