"""What a run leaves in the machine's temporary folder is seen, and what others leave there is not taken for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.left_in_tmp import note_what_is_there, what_was_left
from tests.temporary import temporary_files_in

YESTERDAY = time.time() - 86_400


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    """The machine's temporary folder, with the store of a cluster of yesterday."""
    machine = tmp_path / "machine"
    store = machine / "hadoop-yarn-yarn/node-attribute"
    store.mkdir(parents=True)
    os.utime(store, (YESTERDAY, YESTERDAY))
    with temporary_files_in(machine):
        note_what_is_there(tmp_path)
        yield machine


def test_what_was_there_and_what_others_write_is_not_of_the_run(machine: Path, tmp_path: Path) -> None:
    (machine / "an-editors-file").touch()
    assert what_was_left(tmp_path) == []


def test_a_new_folder_of_hadoop_is_of_the_run(machine: Path, tmp_path: Path) -> None:
    (machine / "hadoop-hdfs").mkdir()
    assert what_was_left(tmp_path) == [str(machine / "hadoop-hdfs")]


def test_a_store_that_the_run_wrote_to_again_is_of_the_run(machine: Path, tmp_path: Path) -> None:
    store = machine / "hadoop-yarn-yarn/node-attribute"
    (store / "nodeattribute.mirror").touch()
    assert what_was_left(tmp_path) == [str(store)]
