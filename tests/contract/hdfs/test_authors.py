"""What HDFS tells of who wrote a file and who else may, what a folder's owner can change of it, and how long a text is
read."""

from __future__ import annotations

from collections.abc import Iterator
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.rpc.connection import RemoteError
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.formats.protobuf import encode
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.clusters.state_dir import ground_of
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.live.last_blocks import namenode_of
from tests.live.token_makers import access_as

PLACE = "/authors"


@pytest.fixture(scope="module")
def hdfs(owner: LeaseSession, superuser: LeaseSession) -> Hdfs:
    """HDFS for a user, with a folder in which everybody can write."""
    superuser.base.hdfs.make_folder(PLACE, "1777")
    return owner.base.hdfs


@pytest.fixture(scope="module")
def stranger(minicluster: Minicluster) -> Iterator[Hdfs]:
    with access_as(minicluster, "watcher") as session:
        yield session.hdfs


@pytest.fixture
def place(hdfs: Hdfs, request: pytest.FixtureRequest) -> str:
    """A closed folder of this test alone, which everybody can list."""
    folder = f"{PLACE}/{request.node.originalname}"
    hdfs.make_folder(folder, "755")
    return folder


def let_watcher_in(hdfs: Hdfs, folder: str, entry: str = "user:watcher:rwx") -> None:
    hdfs.change_acl(folder, entry)


def test_a_listing_tells_each_entrys_owner_group_and_mode_and_if_it_has_an_acl(
    hdfs: Hdfs, superuser: LeaseSession, place: str
) -> None:
    """The mask of an ACL stands in the place of the group's rights. The group is that of the folder above."""
    for name, mode in {"closed": "755", "group": "775", "sticky": "1777", "acl": "755"}.items():
        hdfs.make_folder(f"{place}/{name}", mode)
    let_watcher_in(hdfs, f"{place}/acl")
    superuser.base.hdfs.write(f"{place}/theirs", "", permission="644")
    us, entries = getuser(), {entry.name: entry for entry in hdfs.list(place)}
    assert {name: (entry.owner, entry.permission, entry.acl) for name, entry in entries.items()} == {
        "closed": (us, "755", False),
        "group": (us, "775", False),
        "sticky": (us, "1777", False),
        "acl": (us, "775", True),
        "theirs": ("hdfs", "644", False),
    }
    assert {entry.group for entry in entries.values()} == {hdfs.status(place).group}
    assert [name for name, entry in entries.items() if entry.is_folder and ground_of(entry).closed] == ["closed"]


def test_a_file_that_a_stranger_moves_keeps_its_owner_under_any_name(hdfs: Hdfs, stranger: Hdfs, place: str) -> None:
    """He needs no more than to write in both folders; the sticky bit of the second one is not in his way."""
    for folder, mode in {"from": "777", "to": "1777"}.items():
        hdfs.make_folder(f"{place}/{folder}", mode)
    hdfs.write(f"{place}/from/notes", "ours", permission="644")
    hdfs.make_folder(f"{place}/from/folder", "755")
    for source, target in {"notes": "gen-999999", "folder": "stop-000001"}.items():
        stranger.rename_onto_nothing(f"{place}/from/{source}", f"{place}/to/{target}")
    owners = {entry.name: entry.owner for entry in hdfs.list(f"{place}/to")}
    assert owners == {"gen-999999": getuser(), "stop-000001": getuser()}
    assert stranger.read(f"{place}/to/gen-999999") == "ours"


def test_the_acl_of_a_folder_names_who_else_may(hdfs: Hdfs, place: str) -> None:
    assert hdfs.acl(place) == ()
    let_watcher_in(hdfs, place)
    assert hdfs.acl(place) == ("user:watcher:rwx", "group::r-x")


def test_the_owner_of_a_folder_closes_it_and_nobody_else(hdfs: Hdfs, stranger: Hdfs, place: str) -> None:
    folder = f"{place}/open"
    hdfs.make_folder(folder, "777")
    let_watcher_in(hdfs, folder)
    stranger.write(f"{folder}/strange", "")
    with pytest.raises(Denied, match="Permission denied"):
        stranger.close_folder(folder)
    assert not ground_of(hdfs.status(folder)).closed
    hdfs.close_folder(folder)
    closed = hdfs.status(folder)
    assert (closed.permission, closed.acl) == ("755", False)
    with pytest.raises(Denied, match="access=WRITE"):
        stranger.write(f"{folder}/stranger", "")
    # What was written before stays, and is its author's.
    assert {file.name: file.owner for file in hdfs.list(folder)} == {"strange": "watcher"}


def test_a_folder_without_an_acl_is_closed_likewise(hdfs: Hdfs, place: str) -> None:
    hdfs.make_folder(f"{place}/open", "775")
    hdfs.close_folder(f"{place}/open")
    assert ground_of(hdfs.status(f"{place}/open")).closed


def test_below_a_default_acl_a_folder_has_an_acl_whatever_mode_it_was_made_with(hdfs: Hdfs, place: str) -> None:
    """So only its owner's `close_folder` gives it the mode alone."""
    let_watcher_in(hdfs, place, "default:user:watcher:rwx")
    hdfs.make_folder(f"{place}/made", "755")
    assert hdfs.status(f"{place}/made").acl
    hdfs.close_folder(f"{place}/made")
    made = hdfs.status(f"{place}/made")
    assert (made.permission, made.acl) == ("755", False)
    hdfs.make_folder(f"{place}/made/below", "755")
    assert not hdfs.status(f"{place}/made/below").acl


def test_a_text_is_read_up_to_a_limit_and_one_that_is_longer_is_refused(hdfs: Hdfs, place: str) -> None:
    hdfs.write(f"{place}/longest", "x" * LONGEST_TEXT)
    hdfs.write(f"{place}/longer", "x" * (LONGEST_TEXT + 1))
    assert len(hdfs.read(f"{place}/longest")) == LONGEST_TEXT
    with pytest.raises(InvalidInput, match="it is longer than 1048576 bytes"):
        hdfs.read(f"{place}/longer")
    assert len(hdfs.read(f"{place}/longer", at_most=LONGEST_TEXT + 1)) == LONGEST_TEXT + 1
    with pytest.raises(InvalidInput, match="it is longer than 10 bytes"):
        hdfs.read(f"{place}/longest", at_most=10)


@pytest.mark.parametrize("milliseconds", [(1 << 63) - 1, 253_402_300_800_000, -2, -(1 << 63)])
def test_whatever_time_a_file_was_given_the_listing_with_it_can_be_read(
    minicluster: Minicluster, hdfs: Hdfs, owner: LeaseSession, place: str, milliseconds: int
) -> None:
    """Its owner may set any that lies ahead. One below zero the NameNode takes, too, and leaves the time as it was."""
    path = f"{place}/{milliseconds}"
    hdfs.write(path, "", permission="644")
    year = hdfs.status(path).modified.year if milliseconds < 0 else 2200
    with namenode_of(minicluster, "streamer") as namenode:
        # SetTimesRequestProto. WebHDFS itself takes none below -1.
        times = encode({1: path, 2: milliseconds, 3: -1})
        (answer,) = namenode.call("set its time", "setTimes", [times])
    assert not isinstance(answer, RemoteError), answer
    listed = {entry.name: entry.modified.year for entry in hdfs.list(place)}
    assert listed[str(milliseconds)] == hdfs.status(path).modified.year == year
    assert owner.rpc
    for states in (owner.pool.states([path]), owner.rpc.states([path])):
        assert [state.modified.year for state in states if isinstance(state, FileState)] == [year]
