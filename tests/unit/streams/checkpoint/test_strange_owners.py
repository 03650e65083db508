"""Everybody who may write in a checkpoint can write in its record: what strangers say there gives nothing.

It can refuse, and then the refusal names the author, and how the entry is removed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.authors import Ground, Standing, Supervisors
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, RestartAborted
from airflow_kstream.model.streams.checkpoint_owner import Owner, number_of_entry
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.authors import giving
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.checkpoint.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.checkpoint.ownership import Reader, own, reader_of
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from tests.simulated.interrupted import (
    COPY,
    HERE,
    RECORD,
    SPEC,
    US,
    Interrupted,
    alive,
    attempt,
    hdfs,
    owner,
    subject,
    supervise,
)
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER

__all__ = ["hdfs"]

FOLDER = RECORD.rstrip("/")
GHOST = Owner("ghost", "/elsewhere", "hdfs://simulated")
THEIRS = Owner("copy", CLUSTER.state_dir, CLUSTER.default_fs)


def entries(hdfs: Interrupted) -> list[str]:
    return sorted(name.removeprefix(RECORD) for name in hdfs.files if name.startswith(f"{RECORD}owner-"))


def opened(hdfs: Interrupted) -> None:
    """Let everybody write in the record, as a checkpoint in a folder with a default ACL does."""
    hdfs.modes[FOLDER] = "777"
    hdfs.owners.setdefault(FOLDER, "streamer")


def scribble(hdfs: Interrupted, number: int, says: Owner, author: str = "mallory", **more: object) -> None:
    """Write an entry as another user."""
    opened(hdfs)
    text = {"version": 1, "nonce": "x", **vars(says), **more}
    with hdfs.as_user(author):
        hdfs.write(f"{RECORD}owner-{number:06d}", json.dumps(text))


def data_of_nobody(life: Life) -> None:
    life.engine.complete_epoch(SPEC)


class TestNothingIsGiven:
    """Entries that would give a checkpoint, from authors who may not."""

    @pytest.mark.parametrize("word", ["take-over", "adopt", ""])
    def test_a_strangers_entry_that_names_us_gives_no_data(self, life: Life, hdfs: Interrupted, word: str) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, word=word, generation=1)
        with pytest.raises(Conflict) as refused:
            supervise(life.run)
        assert "has no owner" in str(refused.value)
        assert f"{RECORD}owner-000001 says that it is stream orders" in str(refused.value)
        assert "which counts for nothing here: mallory wrote it" in str(refused.value)
        assert alive(life) == []

    def test_a_stream_that_has_run_takes_its_checkpoint_all_the_same(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        hdfs.delete(FOLDER, recursive=True)
        scribble(hdfs, 7, US, word="adopt", generation=999)
        assert [done.what for done in supervise(life.run, Mode.WATCH).done] == [f"owns {HERE}"]
        assert hdfs.owners[f"{RECORD}owner-000008"] == "streamer"
        life.request_restart()
        assert supervise(life.run).generation == 2

    def test_a_job_that_a_stranger_says_was_half_adopted_holds_nothing_up(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        scribble(hdfs, 2, US, word="adopt", generation=999, reason="adopted application_1_0099")
        life.request_restart()
        assert supervise(life.run).generation == 2

    @pytest.mark.parametrize("of", [US, GHOST])
    def test_a_strangers_release_gives_the_checkpoint_to_nobody(self, life: Life, hdfs: Interrupted, of: Owner) -> None:
        supervise(life.run)
        scribble(hdfs, 2, of, released=True)
        with pytest.raises(Conflict) as refused:
            supervise(subject(life, COPY))
        assert "belongs to stream orders" in str(refused.value)
        assert "says a release, which counts for nothing here: mallory wrote it" in str(refused.value)
        before = entries(hdfs)
        assert supervise(life.run).declaration.owner_doubt == ""
        life.request_restart()
        assert supervise(life.run).generation == 2
        assert entries(hdfs) == before, "it owns it all the time"

    def test_a_stop_and_a_start_pass_over_what_strangers_wrote(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        scribble(hdfs, 2, US, released=True)
        life.set_desired(DesiredState.STOPPED)
        assert supervise(life.run).phase is Phase.STOPPED
        scribble(hdfs, 4, US)
        life.set_desired(DesiredState.RUNNING)
        assert supervise(life.run).generation == 2
        assert [number for number in (3, 5) if hdfs.owners[f"{RECORD}owner-00000{number}"] == "streamer"] == [3, 5]

    def test_a_word_of_a_supervisor_gives_it(self, life: Life, hdfs: Interrupted) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, author="hdfs", word="take-over")
        assert supervise(life.run).phase is Phase.RUNNING


class TestRefusals:
    """Entries that name another stream refuse, regardless of their authors."""

    def test_the_author_is_shown_and_how_the_entry_is_removed(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        scribble(hdfs, 2, GHOST, by="jane@edge1")
        report = supervise(life.run)
        assert (report.phase, len(alive(life))) == (Phase.RUNNING, 1)
        assert "belongs to stream ghost of state_dir /elsewhere" in report.declaration.owner_doubt
        assert "(by jane@edge1 (HDFS user mallory))" in report.declaration.owner_doubt
        life.request_restart()
        with pytest.raises(RestartAborted, match=rf"mallory wrote that, .*`hdfs dfs -rm {RECORD}owner-000002`"):
            supervise(life.run)
        hdfs.delete(f"{RECORD}owner-000002")
        assert supervise(life.run).generation == 2

    def test_a_person_takes_it_back(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        scribble(hdfs, 2, GHOST)
        checked = "; ".join(take_over(life.run, "mine", tell=lambda line: None).checked)
        assert "was of stream ghost" in checked
        assert "as mallory wrote" in checked
        life.request_restart()
        assert supervise(life.run).generation == 2

    def test_one_that_we_may_not_read_may_name_an_owner(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        scribble(hdfs, 2, US)

        def unreadable(request: str, path: str) -> None:
            if (request, path) == ("read", f"{RECORD}owner-000002"):
                raise Denied("Permission denied")

        hdfs.at_request = unreadable
        assert f"{RECORD}owner-000002 of mallory can't be read" in supervise(life.run).declaration.owner_doubt

    @pytest.mark.parametrize("state_dir", ["kstream", "/kstream/../data", "", "/half\ud800", "/" + "x" * 2000])
    def test_an_owner_is_looked_for_only_where_a_state_dir_can_be(
        self, life: Life, hdfs: Interrupted, state_dir: str
    ) -> None:
        scribble(hdfs, 1, replace(GHOST, state_dir=state_dir))
        with pytest.raises(InvalidInput, match="of mallory can't be understood: it names no stream of a state_dir"):
            supervise(life.run)


class TestNumbers:
    """The next entry comes after everything that is there."""

    def test_names_that_a_stranger_occupies_are_passed_over(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        scribble(hdfs, 500_000, US, released=True)
        life.set_desired(DesiredState.STOPPED)
        supervise(life.run)
        assert entries(hdfs) == ["owner-000001", "owner-500000", "owner-500001"]
        assert owner(life.run) is None

    @pytest.mark.parametrize("name", ["owner-0000001", "owner-1", "owner-" + "9" * 200, "owner-000001x", "gen-000001"])
    def test_each_number_has_one_name(self, name: str) -> None:
        assert number_of_entry(name) is None

    def test_the_last_number_is_a_refusal_with_the_way_out(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        scribble(hdfs, 999_999_999, US)
        life.request_restart()
        assert supervise(life.run).generation == 2, "it owns its checkpoint, and writes nothing"
        life.set_desired(DesiredState.STOPPED)
        assert f"`hdfs dfs -rm -r {RECORD}owner-999999999`" in supervise(life.run).declaration.owner_doubt

    def test_a_flood_of_entries_hides_nothing(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        for number in range(2, 20):
            scribble(hdfs, number, THEIRS, released=True)
        with pytest.raises(Conflict, match="belongs to stream orders"):
            supervise(subject(life, COPY))
        for number in range(20, 110):
            scribble(hdfs, number, THEIRS)
        with pytest.raises(InvalidInput, match=r"has 109 entries, of mallory, streamer: remove those of strangers"):
            supervise(subject(life, replace(COPY, name="copy")))

    def test_old_entries_that_we_may_not_delete_stay(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        for number in range(2, 15):
            scribble(hdfs, number, US)
        hdfs.modes[FOLDER], hdfs.owners[FOLDER] = "1777", "hdfs"
        life.set_desired(DesiredState.STOPPED)
        assert supervise(life.run).phase is Phase.STOPPED
        assert owner(life.run) is None
        assert len(entries(hdfs)) == 14, "in a folder with the sticky bit only one's own are deleted"


def test_strangers_never_bring_two_streams_onto_one_checkpoint(life: Life, hdfs: Interrupted) -> None:
    """A stranger takes a number far ahead while two streams race for the next one, at whatever moment."""
    bring_back = hdfs.kept()
    hdfs.asked = 0
    supervise(subject(life, COPY))
    for at in range(1, hdfs.asked + 1):
        bring_back()
        life.yarn.apps.clear()

        def meanwhile() -> None:
            scribble(hdfs, 50, US, released=True)
            attempt(lambda: supervise(life.run))

        hdfs.asked, hdfs.at, hdfs.happens = 0, at, meanwhile
        attempt(lambda: supervise(subject(life, COPY)))
        hdfs.at = 0
        assert len(alive(life)) <= 1, f"both run, if it happens before request {at}"
        for run in (life.run, subject(life, COPY)):
            with suppress(Conflict):
                supervise(run)
        assert len(alive(life)) == 1, f"and one does at the next look, if it happens before request {at}"


def test_who_writes_after_a_number_that_nobody_had_seen_has_not_got_it(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    lock = CheckpointLock(life.run.session.hdfs, HERE)
    scribble(hdfs, 50, GHOST, released=True)
    with pytest.raises(Conflict, match="changed meanwhile"):
        lock.give([1], THEIRS)
    assert entries(hdfs) == ["owner-000001", "owner-000050"]


class TestFolders:
    """The record's folder: how it is made, and what becomes of one that others made."""

    def test_it_is_made_closed_whatever_the_checkpoint_hands_down(self, life: Life, hdfs: Interrupted) -> None:
        hdfs.acls |= {HERE, FOLDER}
        supervise(life.run)
        assert (hdfs.modes[HERE], hdfs.modes[FOLDER], hdfs.acls) == ("755", "755", set())

    def test_an_open_one_stays_open_so_that_nothing_in_it_counts_by_that(self, life: Life, hdfs: Interrupted) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, word="take-over")
        with pytest.raises(Conflict, match="has no owner"):
            supervise(life.run)
        take_over(life.run, "mine", tell=lambda line: None)
        assert hdfs.modes[FOLDER] == "777"

    def test_a_strangers_folder_in_its_place_is_named_with_the_superusers_command(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        hdfs.modes[FOLDER], hdfs.owners[FOLDER] = "755", "mallory"
        with pytest.raises(Denied) as denied:
            own(life.run, observe(life.run))
        assert f"{FOLDER} belongs to mallory" in str(denied.value)
        assert f"`hdfs dfs -rm -r {FOLDER}` makes way" in str(denied.value)


def alices(life: Life, hdfs: Interrupted) -> StreamRun:
    """Return the stream as it ran so far as alice, who is not a supervisor: nobody kept a copy of its declaration."""
    life.yarn.whoami = "alice"
    hdfs.modes[CLUSTER.state_dir] = "1777"
    with hdfs.as_user("alice"):
        run = subject(life, SPEC)
        assert supervise(run).phase is Phase.RUNNING
        life.engine.complete_epoch(SPEC)
    assert hdfs.owners[f"{RECORD}owner-000001"] == "alice"
    return run


class TestTheHealthy:
    """Entries of honest authors, by whatever name they go today."""

    def test_a_reader_who_knows_no_user_of_the_stream_calls_nobody_a_stranger(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        alices(life, hdfs)
        before = entries(hdfs)
        with hdfs.as_user("watcher"):
            looker = replace(subject(life, SPEC), declared=False)
            report = supervise(looker, Mode.WATCH)
        assert (report.phase, report.declaration.owner_doubt) == (Phase.RUNNING, "")
        assert entries(hdfs) == before

    def test_a_reader_who_knows_no_user_is_given_nothing_either(self, life: Life, hdfs: Interrupted) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, author="alice", word="take-over")
        with hdfs.as_user("watcher"):
            looker = replace(subject(life, SPEC), declared=False)
            with pytest.raises(Conflict, match="has this stream as its owner, but state_dir has no claim of it"):
                own(looker, observe(looker))

    @pytest.mark.parametrize("folder", ["755", "777"])
    def test_a_stream_that_changes_its_user_keeps_its_checkpoint(
        self, life: Life, hdfs: Interrupted, folder: str
    ) -> None:
        """The superuser hands the folders on by chown, or lets both write."""
        stopped = alices(life, hdfs)
        life.yarn.end("application_1_0001")
        for path in (stopped.id.folder, HERE, FOLDER):
            hdfs.owners[path] = "streamer"
        hdfs.modes[FOLDER] = folder
        life.yarn.whoami = "streamer"
        assert supervise(subject(life, SPEC)).generation == 2

    def test_in_a_closed_folder_of_its_user_all_entries_count(self, life: Life, hdfs: Interrupted) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, author="alice", word="take-over")
        hdfs.modes[FOLDER] = "755"
        assert supervise(life.run).phase is Phase.RUNNING

    def test_a_server_that_tells_no_owner_leaves_the_record_as_it_is(self, life: Life, hdfs: Interrupted) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, word="take-over")
        hdfs.owners[f"{RECORD}owner-000001"] = ""
        assert supervise(life.run).phase is Phase.RUNNING

    def test_a_filesystem_that_is_all_one_users_leaves_the_record_as_it_is(self, life: Life, hdfs: Interrupted) -> None:
        data_of_nobody(life)
        scribble(hdfs, 1, US, author="svc", word="take-over")
        hdfs.owners |= dict.fromkeys(("/", CLUSTER.state_dir, HERE, FOLDER), "svc")
        assert supervise(subject(life, SPEC)).phase is Phase.RUNNING

    def test_a_restored_copy_of_a_checkpoint_belongs_to_the_stream_that_it_names(
        self, life: Life, hdfs: Interrupted
    ) -> None:
        """A person restored it, so that its files are theirs, and lets the stream write; it has a claim of it."""
        supervise(life.run)
        life.engine.complete_epoch(SPEC)
        hdfs.owners |= dict.fromkeys((FOLDER, f"{RECORD}owner-000001"), "jane")
        hdfs.modes[FOLDER] = "777"
        life.request_restart()
        assert supervise(life.run).generation == 2
        assert owner(life.run) == US
        assert hdfs.owners[f"{RECORD}owner-000002"] == "streamer"

    def test_a_known_stream_costs_no_request_more_for_the_proof(self, life: Life, hdfs: Interrupted) -> None:
        supervise(life.run)
        reader, lock = reader_of(life.run), CheckpointLock(life.run.session.hdfs, HERE)
        hdfs.asked = 0
        assert reader.record(lock).entry
        assert hdfs.asked == 2, "a listing and an entry"


def test_for_housekeeping_a_stream_owns_what_a_stranger_says_is_anothers(life: Life, hdfs: Interrupted) -> None:
    """Its folder is not removed for what somebody wrote."""
    supervise(life.run)
    scribble(hdfs, 2, GHOST)
    assert Reader(life.run.session, life.run.id).still_owns(HERE)
    life.set_desired(DesiredState.STOPPED)
    hdfs.delete(f"{RECORD}owner-000002")
    supervise(life.run)
    scribble(hdfs, 3, US)
    assert Reader(life.run.session, life.run.id, acting=True).still_owns(HERE) is False


def test_for_housekeeping_a_release_by_an_unknown_user_takes_back_their_own_entry(
    life: Life, hdfs: Interrupted
) -> None:
    scribble(hdfs, 1, US, author="alice")
    reader = Reader(life.run.session, life.run.id)
    assert reader.still_owns(HERE)
    scribble(hdfs, 2, US, author="alice", released=True)
    assert not reader.still_owns(HERE)


def test_who_gives_is_who_may_speak_for_the_stream_or_the_reader_himself() -> None:
    supervisors, open_ground = Supervisors("hdfs", "airflow"), Ground("mallory", closed=True)

    def of(author: str, *users: str, ground: Ground | None = None) -> Standing:
        return giving(author, "me", supervisors, ground, frozenset(users))

    assert {of(author, "alice") for author in ("", "me", "hdfs", "airflow", "alice")} == {Standing.MAY}
    assert of("bob", "alice") is of("bob", "alice", ground=open_ground) is Standing.STRANGER
    assert of("bob", "alice", ground=Ground("alice", closed=True)) is Standing.MAY
    assert of("bob") is Standing.NOT_PROVEN
