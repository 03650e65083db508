"""Names that a stranger occupies in a stream's folder which somebody opened: they keep nobody from working."""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.contract import ended_file, launched_file
from airflow_kstream.policy.streams.restart.reconcile import Mode
from tests.simulated.life import Life

FIRST = "application_1_0001"


def occupy(life: Life, *names: str) -> None:
    """Let a stranger write these files, in a folder that lets everybody."""
    life.hdfs.modes[life.run.id.folder] = "777"
    with life.hdfs.as_user("mallory"):
        for name in names:
            life.hdfs.write(f"{life.run.id.folder}/{name}", "{}")


def test_the_record_of_an_end_is_written_where_a_stranger_wrote_one_first(life: Life) -> None:
    """A stranger's record doesn't count, and ours would be written again at once, without a pause and for ever."""
    life.begin()
    occupy(life, ended_file(1))
    life.yarn.end(FIRST, ApplicationState.FAILED, "an error")
    assert life.reconcile(Mode.ENSURE).generation == 2
    assert "mallory" not in life.hdfs.owners.values()
    assert life.hdfs.modes[life.run.id.folder] == "755"


def test_another_supervisors_record_stays(life: Life) -> None:
    life.begin()
    assert life.run.folder.put_once(ended_file(1), "ours")
    assert not life.run.folder.put_once(ended_file(1), "another's")
    assert life.run.folder.text(ended_file(1)) == "ours"


def test_in_a_folder_that_is_not_ours_to_close_the_stranger_is_named(life: Life) -> None:
    """Its owner is a supervisor, and another one submits."""
    life.begin()
    folder = life.run.id.folder
    life.hdfs.owners[folder] = "hdfs"
    occupy(life, launched_file(1))
    with pytest.raises(Conflict, match=f"{folder}/{launched_file(1)} is mallory's"):
        life.run.folder.put_once(launched_file(1), "ours")
