"""Open files that no writer left in the ordinary way: cut short, or in a snapshot."""

from __future__ import annotations

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.lease_recovery import Outcome
from tests.live.recovering import new_folder, outcomes, scene, the_one
from tests.live.writers import pattern, writer
from tests.live.writers.hadoop_says import content


def test_a_truncation_whose_client_is_gone_is_brought_to_its_end(minicluster: Minicluster) -> None:
    """A cut through a block is a recovery of its own (FSDirTruncateOp); until it ends, the file is open."""
    path = f"{new_folder('truncation')}/cut"
    with scene(minicluster) as streamer:
        streamer.hdfs.write(path, "a" * 100)
        minicluster.pause("datanode")
        try:
            cut = minicluster.hdfs("dfs", "-truncate", "40", path, as_="streamer")
            assert cut.returncode == 0, cut.stderr
            targets = streamer.targets([path])
            assert streamer.state(path).is_open
        finally:
            minicluster.resume("datanode")
        assert the_one(streamer.recover(targets)).outcome.settled
    assert content(minicluster, path) == b"a" * 40


def test_a_file_that_is_open_in_a_snapshot_too_is_recovered(minicluster: Minicluster) -> None:
    """The snapshot's own file counts as closed, and grows with the open one until that is closed.

    With dfs.namenode.snapshot.capture.openfiles it keeps its length of then: see test_files_on_three_datanodes.py.
    """
    folder = new_folder("snapshot")
    path, held = f"{folder}/part", f"{folder}/.snapshot/then/part"
    with scene(minicluster) as streamer, writer(minicluster) as client:
        client.leave(path, 100)
        allowed = minicluster.hdfs("dfsadmin", "-allowSnapshot", folder)
        assert allowed.returncode == 0, allowed.stderr
        made = minicluster.hdfs("dfs", "-createSnapshot", folder, "then", as_="streamer")
        assert made.returncode == 0, made.stderr
        client.write(path, 100)
        client.hflush(path)
        client.kill()
        assert not streamer.state(held).is_open
        assert outcomes(streamer.recover(streamer.targets([path]))) == {Outcome.CLOSED: 1}
    assert content(minicluster, path) == pattern(200)
    assert content(minicluster, held) == pattern(200)
