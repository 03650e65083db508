"""Who may speak for a state_dir stands on HDFS, is the same for every reader, and is not asked twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.model.clusters.authors import FolderKind, folder_name
from airflow_kstream.model.errors import Denied
from airflow_kstream.supervise.clusters.state_dir import StateDir, own_folder
from tests.simulated.fixtures import lived
from tests.simulated.servers import CLUSTER, SimHdfs

PLACE = CLUSTER.state_dir
NAMES = f"{PLACE}/supervisors"


@pytest.fixture
def hdfs() -> Iterator[SimHdfs]:
    """Return an HDFS whose state_dir is open to everybody: the worst that a person can do to it."""
    with lived() as life:
        life.hdfs.modes[PLACE] = "1777"
        yield life.hdfs


def state_of(hdfs: SimHdfs) -> StateDir:
    return StateDir(hdfs, PLACE)  # type: ignore[arg-type]


def name(hdfs: SimHdfs, text: str, *, by: str) -> None:
    with hdfs.as_user(by):
        hdfs.write(NAMES, text, overwrite=True)


def unreadable(request: str, path: str) -> None:
    """Refuse to read who is named."""
    if (request, path) == ("read", NAMES):
        raise Denied("Permission denied", tried=f"read {NAMES}")


def test_the_owners_of_the_root_and_of_the_state_dir_supervise(hdfs: SimHdfs) -> None:
    assert str(state_of(hdfs).look().supervisors) == "hdfs, streamer"


@pytest.mark.parametrize("by", ["hdfs", "streamer"])
def test_either_of_them_may_name_more(hdfs: SimHdfs, by: str) -> None:
    name(hdfs, "backup\nann # on duty\n", by=by)
    assert str(state_of(hdfs).look().supervisors) == "ann, backup, hdfs, streamer"


def test_a_file_of_anybody_else_names_nobody(hdfs: SimHdfs) -> None:
    name(hdfs, "mallory\n", by="mallory")
    assert "mallory" not in state_of(hdfs).look().supervisors


def test_who_is_named_in_the_file_can_name_nobody(hdfs: SimHdfs) -> None:
    name(hdfs, "ann\n", by="streamer")
    state = state_of(hdfs)
    assert "ann" in state.look().supervisors
    hdfs.delete(NAMES)
    name(hdfs, "ann\nmallory\n", by="ann")
    assert "mallory" not in state.look().supervisors
    hdfs.clock.sleep(61)
    assert str(state.look().supervisors) == "hdfs, streamer"


def test_a_folder_in_the_place_of_the_file_names_nobody(hdfs: SimHdfs) -> None:
    hdfs.make_folder(NAMES)
    assert str(state_of(hdfs).look().supervisors) == "hdfs, streamer"


def test_every_reader_sees_the_same_supervisors(hdfs: SimHdfs) -> None:
    name(hdfs, "backup\n", by="streamer")
    seen = set()
    for reader in ("streamer", "billing", "hdfs", "mallory"):
        with hdfs.as_user(reader):
            seen.add(str(state_of(hdfs).look().supervisors))
    assert seen == {"backup, hdfs, streamer"}


def test_names_that_nobody_may_read_leave_nothing_to_judge(hdfs: SimHdfs) -> None:
    name(hdfs, "backup\n", by="streamer")
    hdfs.at_request = unreadable
    with pytest.raises(Denied):
        state_of(hdfs).look()


def test_one_who_is_named_or_struck_out_is_noticed_at_the_next_look(hdfs: SimHdfs) -> None:
    state = state_of(hdfs)
    state.look()
    for text, named in (("ann\n", True), ("bob\n", False), ("ann\nbob\n", True)):
        hdfs.clock.sleep(1)
        name(hdfs, text, by="streamer")
        assert ("ann" in state.look().supervisors) is named


def test_who_was_named_speaks_while_the_file_is_replaced(hdfs: SimHdfs) -> None:
    """`hdfs dfs -put -f` deletes it and then renames the new one: a stopped stream must not start in between."""
    name(hdfs, "ann\n", by="streamer")
    state = state_of(hdfs)
    state.look()
    hdfs.delete(NAMES)
    for seconds in (0, 59):
        hdfs.clock.sleep(seconds)
        assert "ann" in state.look().supervisors
    name(hdfs, "bob\n", by="streamer")
    assert str(state.look().supervisors) == "bob, hdfs, streamer"


def test_a_session_that_begins_while_it_is_replaced_reads_the_new_file(hdfs: SimHdfs) -> None:
    name(hdfs, "ann\n", by="streamer")
    hdfs.rename_over(NAMES, f"{NAMES}._COPYING_")
    assert "ann" in state_of(hdfs).look().supervisors
    with hdfs.as_user("mallory"):
        hdfs.write(NAMES, "mallory\n")
    assert str(state_of(hdfs).look().supervisors) == "ann, hdfs, streamer"


def test_a_new_file_of_a_stranger_names_nobody(hdfs: SimHdfs) -> None:
    with hdfs.as_user("mallory"):
        hdfs.write(f"{NAMES}._COPYING_", "mallory\n")
    assert "mallory" not in state_of(hdfs).look().supervisors


def test_without_the_file_they_lose_their_say_after_a_minute_and_it_is_logged(
    hdfs: SimHdfs, caplog: pytest.LogCaptureFixture
) -> None:
    name(hdfs, "ann\n", by="streamer")
    state = state_of(hdfs)
    state.look()
    hdfs.delete(NAMES)
    assert "ann" in state.look().supervisors
    hdfs.clock.sleep(61)
    assert str(state.look().supervisors) == "hdfs, streamer"
    assert "ann may no longer speak for all streams" in caplog.text


def test_names_that_cannot_be_read_for_a_moment_still_count(hdfs: SimHdfs) -> None:
    """A new file may get its mode after it has its name."""
    name(hdfs, "ann\n", by="streamer")
    state = state_of(hdfs)
    state.look()
    hdfs.clock.sleep(1)
    name(hdfs, "ann\nbob\n", by="streamer")
    hdfs.at_request = unreadable
    assert "ann" in state.look().supervisors
    hdfs.clock.sleep(61)
    with pytest.raises(Denied):
        state.look()


def test_a_line_that_is_no_text_costs_nobody_else_the_right_to_speak(hdfs: SimHdfs) -> None:
    with hdfs.as_user("streamer"):
        hdfs.write(NAMES, b"ann # for M\xfcller\nM\xfcller\nbob@EXAMPLE.COM\ncarl dora\neve\n")
    supervisors = state_of(hdfs).look().supervisors
    assert {"ann", "eve", "hdfs", "streamer"} < supervisors.users
    assert supervisors.misnamed == ("M\ufffdller", "bob@EXAMPLE.COM", "carl dora")


def test_a_new_owner_of_the_state_dir_is_noticed_within_minutes(hdfs: SimHdfs) -> None:
    state = state_of(hdfs)
    state.look()
    hdfs.owners[PLACE] = "airflow"
    hdfs.clock.sleep(601)
    assert str(state.look().supervisors) == "airflow, hdfs"


def test_who_makes_a_state_dir_that_was_missing_supervises_it_at_once(hdfs: SimHdfs) -> None:
    del hdfs.modes[PLACE]
    state = state_of(hdfs)
    assert str(state.look().supervisors) == "hdfs"
    hdfs.modes[PLACE] = "755"
    assert str(state.look().supervisors) == "hdfs, streamer"


@pytest.mark.parametrize("kind", FolderKind)
def test_an_author_passes_over_a_name_that_somebody_else_took(hdfs: SimHdfs, kind: FolderKind) -> None:
    with hdfs.as_user("mallory"):
        hdfs.make_folder(f"{PLACE}/{kind}.streamer", "777")
        hdfs.write(f"{PLACE}/{kind}.streamer.2", "a file, which is not a folder")
    ours = own_folder(hdfs, PLACE, kind)  # type: ignore[arg-type]
    assert ours == f"{PLACE}/{kind}.streamer.3"
    hdfs.make_folder(ours, "755")
    hdfs.delete(f"{PLACE}/{kind}.streamer", recursive=True)
    assert own_folder(hdfs, PLACE, kind) == ours, "what lies there stays ours"  # type: ignore[arg-type]


def test_more_names_than_a_listing_shows_hide_no_name_that_is_occupied(hdfs: SimHdfs) -> None:
    hdfs.most_rows = 20
    with hdfs.as_user("mallory"):
        for number in range(1, 40):
            hdfs.make_folder(f"{PLACE}/{folder_name(FolderKind.ORDERS, 'ops', number)}", "755")
    with hdfs.as_user("ops"):
        ours = own_folder(hdfs, PLACE, FolderKind.ORDERS)  # type: ignore[arg-type]
        assert ours not in hdfs.modes
        hdfs.make_folder(ours, "755")
        assert own_folder(hdfs, PLACE, FolderKind.ORDERS) == ours  # type: ignore[arg-type]


def test_a_number_that_is_ours_is_found_whatever_else_begins_with_our_name(hdfs: SimHdfs) -> None:
    with hdfs.as_user("mallory"):
        hdfs.make_folder(f"{PLACE}/orders.streamer", "755")
    for other in ("orders.streamer2", "orders.streamer.10", "orders.streamer.9", "orders.streamer.x"):
        hdfs.make_folder(f"{PLACE}/{other}", "755")
    assert own_folder(hdfs, PLACE, FolderKind.ORDERS) == f"{PLACE}/orders.streamer.9"  # type: ignore[arg-type]
