"""Who may do what in a closed state_dir: what HDFS grants its owner, the members of its group, and all others."""

from __future__ import annotations

from collections.abc import Iterator
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, named_supervisors
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.session import open_session
from tests.contract.conftest import Living
from tests.live.streams import cluster
from tests.live.token_makers import access_as

STATE_DIR = "/kstream"


@pytest.fixture
def ordinary(minicluster: Minicluster) -> Iterator[Hdfs]:
    """HDFS for a user of the cluster who has nothing to do with streams."""
    with access_as(minicluster, "watcher") as session:
        yield session.hdfs


@pytest.mark.parametrize("who", ["supervisor", "streamer", "gateway", "hdfs"])
def test_supervisors_and_the_users_of_streams_make_folders_in_it(minicluster: Minicluster, who: str) -> None:
    with access_as(minicluster, who) as session:
        made_and_removed(session.hdfs, f"{STATE_DIR}/of-{who}")


def test_whom_gateway_acts_for_makes_folders_in_it_too(minicluster: Minicluster) -> None:
    identity = Identity(minicluster.principal("gateway"), str(minicluster.keytab("gateway")), do_as=getuser())
    with cluster(minicluster, "gateway") as opened, open_session(opened, identity) as session:
        made_and_removed(session.hdfs, f"{STATE_DIR}/of-a-proxied-user")


def made_and_removed(hdfs: Hdfs, folder: str) -> None:
    hdfs.make_folder(folder, "755")
    try:
        hdfs.write(f"{folder}/file", "")
    finally:
        hdfs.delete(folder, recursive=True)


def test_an_ordinary_user_creates_nothing_and_may_look(ordinary: Hdfs, living: Living) -> None:
    folder = living.supervisor.stream.folder
    for path in (f"{STATE_DIR}/mine", f"{folder}/mine"):
        with pytest.raises(Denied, match="Permission denied: user=watcher, access=WRITE"):
            ordinary.write(path, "")
        with pytest.raises(Denied, match="Permission denied: user=watcher, access=WRITE"):
            ordinary.make_folder(path)
    assert folder.rpartition("/")[2] in ordinary.names(STATE_DIR)
    assert ordinary.names(folder) != frozenset()


def test_nobody_but_its_owner_takes_a_folder_away(minicluster: Minicluster, living: Living) -> None:
    """The users of streams can write in state_dir; its sticky bit keeps them from what is not theirs."""
    folder = living.supervisor.stream.folder
    with access_as(minicluster, "gateway") as other:
        with pytest.raises(Denied, match="sticky bit"):
            other.hdfs.delete(folder, recursive=True)
        with pytest.raises(Denied, match="sticky bit"):
            other.hdfs.rename_onto_nothing(folder, f"{STATE_DIR}/taken-away")
        with pytest.raises(Denied, match="sticky bit"):
            other.hdfs.delete(f"{STATE_DIR}/{SUPERVISORS_FILE}")
        assert other.hdfs.status(folder).owner == getuser()


def test_its_owner_reads_a_checkpoint_that_is_open_to_the_streams_group(
    minicluster: Minicluster, ordinary: Hdfs, living: Living
) -> None:
    (checkpoint,) = living.supervisor.spec.checkpoints
    with access_as(minicluster, "supervisor") as supervisor:
        assert "commits" in supervisor.hdfs.names(checkpoint)
    with pytest.raises(Denied):
        ordinary.names(checkpoint)


def test_all_read_who_the_supervisors_are(ordinary: Hdfs) -> None:
    file = f"{STATE_DIR}/{SUPERVISORS_FILE}"
    assert named_supervisors(ordinary.read(file)) == {getuser(), "gateway"}
    assert ordinary.status(file).owner == ordinary.status(STATE_DIR).owner == "supervisor"
