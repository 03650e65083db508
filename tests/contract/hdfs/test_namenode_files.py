"""The NameNode over WebHDFS: which of two renames it grants, what it overwrites, lists and refuses."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Contents, Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Conflict, Denied, NotFound
from airflow_kstream.supervise.clusters.write_once import require_exclusive_renames
from airflow_kstream.supervise.leases.session import LeaseSession
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from tests.live.recovering import standby_first
from tests.live.writers import Writer


@pytest.fixture(scope="module")
def hdfs(owner: LeaseSession) -> Hdfs:
    return owner.base.hdfs


def test_of_two_renames_onto_one_name_one_is_granted(hdfs: Hdfs, folder: str) -> None:
    for rival in ("ours", "theirs"):
        hdfs.write(f"{folder}/{rival}", rival)
    hdfs.rename_onto_nothing(f"{folder}/ours", f"{folder}/claim")
    with pytest.raises(Conflict):
        hdfs.rename_onto_nothing(f"{folder}/theirs", f"{folder}/claim")
    assert hdfs.read(f"{folder}/claim") == "ours"
    hdfs.rename_over(f"{folder}/theirs", f"{folder}/claim")
    assert hdfs.read(f"{folder}/claim") == "theirs"
    assert hdfs.names(folder) == {"claim"}


def test_a_namenode_passes_the_check_of_its_renames_and_nothing_is_left(hdfs: Hdfs, folder: str) -> None:
    require_exclusive_renames(hdfs, folder)
    assert hdfs.list(folder) == ()


def test_a_file_is_created_once_and_overwritten_on_request(hdfs: Hdfs, folder: str) -> None:
    hdfs.write(f"{folder}/file", "first")
    with pytest.raises(Conflict):
        hdfs.write(f"{folder}/file", "second")
    assert hdfs.read(f"{folder}/file") == "first"
    hdfs.write(f"{folder}/file", "second", overwrite=True)
    assert hdfs.read(f"{folder}/file") == "second"


def test_another_principal_reads_a_freeze_and_lifts_it_by_a_file_of_its_own(
    owner: LeaseSession, superuser: LeaseSession, folder: str
) -> None:
    ours, theirs = owner.base.at(folder), superuser.base.at(folder)
    frozen = FreezeStore(ours).freeze(timedelta(hours=1), "a new NameNode")
    assert frozen.by.startswith(f"{getuser()}@")
    assert FreezeStore(theirs).newest() == frozen
    lifted = FreezeStore(theirs).lift("it is in service")
    assert FreezeStore(ours).newest() == lifted
    assert (lifted.number, "HDFS user hdfs" in lifted.by) == (2, True)
    assert ours.hdfs.names(folder) == {f"orders.{getuser()}", "orders.hdfs"}


def test_a_folder_is_made_with_the_sticky_bit_and_says_so(hdfs: Hdfs, folder: str) -> None:
    hdfs.make_folder(f"{folder}/shared", "1777")
    assert hdfs.status(f"{folder}/shared").permission == "1777"


def test_a_folder_with_a_file_in_it_is_not_deleted(hdfs: Hdfs, folder: str) -> None:
    """Somebody may have claimed a generation since the last look."""
    hdfs.write(f"{folder}/claim", "")
    with pytest.raises(Conflict, match="non empty"):
        hdfs.delete(folder)
    assert hdfs.delete(f"{folder}/claim")
    assert hdfs.delete(folder)
    assert not hdfs.delete(folder)


def test_names_that_begin_alike_are_found_among_others(hdfs: Hdfs, folder: str) -> None:
    others = [f"{folder}/{name}" for name in ("^before", "_", "part-0", "é")]
    for path in (*others, *(f"{folder}/_{number}" for number in range(3))):
        hdfs.write(path, "")
    found = hdfs.matching(folder, lambda file: True, prefix="_")
    assert [file.name for file in found] == ["_", "_0", "_1", "_2"]
    assert hdfs.matching(f"{folder}/nowhere", lambda file: True, prefix="_") == ()


def test_the_sums_of_a_folder_tell_what_comes_and_what_is_closed(hdfs: Hdfs, folder: str, client: Writer) -> None:
    """What a dead job's outputs are watched by: a rename changes nothing, nor does growth within a block."""
    path, before = f"{folder}/.part-0-0.inprogress.1", hdfs.contents(folder)
    assert before == Contents(0, 1, 0)
    client.open(path)
    opened = hdfs.contents(folder)
    assert opened.files == 1
    client.write(path, 1000)
    client.hflush(path)
    grown = hdfs.contents(folder)
    client.rename(path, f"{folder}/part-0-0")
    assert hdfs.contents(folder) == grown
    client.close(f"{folder}/part-0-0")
    assert hdfs.contents(folder) == Contents(1, 1, 1000)
    with pytest.raises(NotFound):
        hdfs.contents(f"{folder}/nowhere")


def test_what_may_not_be_listed_has_no_sums(hdfs: Hdfs, superuser: LeaseSession, folder: str) -> None:
    superuser.base.hdfs.make_folder(f"{folder}/only-hdfs", "700")
    with pytest.raises(Denied, match="only-hdfs"):
        hdfs.contents(folder)


def test_what_is_not_there_is_not_found(hdfs: Hdfs, folder: str) -> None:
    with pytest.raises(NotFound):
        hdfs.read(f"{folder}/nothing")
    assert hdfs.list(f"{folder}/nothing") == ()


def test_two_principals_of_one_process_have_their_own_rights(
    minicluster: Minicluster, hdfs: Hdfs, superuser: LeaseSession, folder: str
) -> None:
    """A refusal names the one that was refused."""
    private = f"{folder}/only-hdfs"
    superuser.base.hdfs.make_folder(private, "700")
    superuser.base.hdfs.write(f"{private}/file", "x", permission="600")
    for refused in (lambda: hdfs.list(private), lambda: hdfs.read(f"{private}/file")):
        with pytest.raises(Denied, match=minicluster.principal("streamer")):
            refused()
    assert superuser.base.hdfs.read(f"{private}/file") == "x"


def test_a_standby_refuses_and_the_active_one_is_asked(
    minicluster: Minicluster, owner: LeaseSession, folder: str
) -> None:
    """A StandbyException, for reading and for writing."""
    standby, active = standby_first(minicluster, minicluster.namenodes)
    for tried in (Hdfs.list, lambda hdfs, path: hdfs.write(f"{path}/written", "")):
        with closing(Hdfs((standby, active), owner.identity, owner.cluster.tls)) as both:
            tried(both, folder)
    assert owner.base.hdfs.names(folder) == {"written"}
