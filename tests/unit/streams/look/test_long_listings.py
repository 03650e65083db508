"""Folders that somebody floods with files: no stream looks unclaimed by it, and nobody's words are lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, folder_name
from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.supervise.clusters.state_dir import own_folder
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.registry import require_known
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER

FEW = 60
STATE_DIR = CLUSTER.state_dir


@pytest.fixture
def flooded(life: Life) -> Life:
    """A stream that runs, whose servers' listings are cut early: twenty thousand files would take a minute."""
    life.hdfs.modes[STATE_DIR] = "1777"
    life.begin()
    life.hdfs.most_rows = FEW
    return life


def flood(life: Life, folder: str, user: str, name: str = "0-{:04d}") -> None:
    for number in range(100, 100 + 3 * FEW):
        path = f"{folder}/{name.format(number)}"
        life.hdfs.files[path] = ("", life.hdfs.now())
        life.hdfs.owners[path] = user


def test_a_flood_in_the_state_dir_hides_no_stream_and_no_word(flooded: Life) -> None:
    FreezeStore(flooded.run.session).freeze(timedelta(hours=1), "a new NameNode")
    flood(flooded, STATE_DIR, "mallory")
    assert flooded.watch().why == "application_1_0001 is RUNNING"
    assert FreezeStore(flooded.run.session).newest().reason == "a new NameNode"
    require_known(flooded.run.session, flooded.run.spec.name, "a test")
    assert flooded.run.session.state.look().cut == {"mallory": 3 * FEW - len(mallorys(flooded))}


def mallorys(life: Life) -> list[str]:
    return [name for name, entry in life.run.session.state.look().entries.items() if entry.owner == "mallory"]


def test_a_flood_of_the_streams_own_user_hides_no_supervisor_no_word_and_no_folder(flooded: Life) -> None:
    """A job that writes its files in the wrong place: its user has the most entries, and then these are cut."""
    flooded.hdfs.files[f"{STATE_DIR}/{SUPERVISORS_FILE}"] = ("jane\n", flooded.hdfs.now())
    flooded.set_desired(DesiredState.HELD)
    flood(flooded, STATE_DIR, "streamer")
    listing = flooded.run.session.state.look()
    assert str(flooded.run.id) not in listing.entries
    assert "jane" in listing.supervisors
    assert flooded.reconcile().phase is Phase.HELD
    assert flooded.run.folder.claim(flooded.run.folder.names()) is not None
    require_known(flooded.run.session, flooded.run.spec.name, "a test")
    with pytest.raises(NotFound):
        require_known(flooded.run.session, "prices", "a test")


def test_a_flood_in_a_streams_open_folder_changes_nothing(flooded: Life) -> None:
    flooded.hdfs.modes[flooded.run.id.folder] = "1777"
    flood(flooded, flooded.run.id.folder, "mallory", "gen-{:06d}")
    assert flooded.watch().why == "application_1_0001 is RUNNING"
    flooded.request_restart()
    assert flooded.reconcile().generation == 2
    assert not set(flooded.hdfs.owners.values()) & {"mallory"}, "its user closed it, without what strangers left there"


def test_a_flood_of_those_who_count_is_refused_with_the_way_out(flooded: Life) -> None:
    """Which claim is the newest can't be told: nobody starts the stream beside itself."""
    flood(flooded, flooded.run.id.folder, "streamer")
    with pytest.raises(InvalidInput, match=r"of streamer; its newest claim .* delete what is not") as refused:
        flooded.run.folder.names()
    assert not refused.value.retryable
    assert len(flooded.yarn.apps) == 1


def test_a_name_that_is_squatted_many_times_is_passed_over(flooded: Life) -> None:
    hdfs = flooded.hdfs
    for number in range(1, FEW // 2):
        path = f"{STATE_DIR}/{folder_name(FolderKind.ORDERS, 'streamer', number)}"
        hdfs.modes[path], hdfs.owners[path] = "755", "mallory"
    flood(flooded, STATE_DIR, "mallory")
    ours = folder_name(FolderKind.ORDERS, "streamer", FEW // 2)
    assert own_folder(flooded.run.session.hdfs, STATE_DIR, FolderKind.ORDERS) == f"{STATE_DIR}/{ours}"
