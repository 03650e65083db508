"""Checkpoints and folders that are lost, restored, locked or full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.faults.kept import Clock, Kept, of_each_engine
from tests.live.faults.table import Tell
from tests.live.streams import await_that

pytestmark = pytest.mark.faults


def dfs(stream: Kept, *words: str, as_: str = "streamer") -> None:
    done = stream.minicluster.hdfs("dfs", *words, as_=as_)
    assert done.returncode == 0, done.stderr


@contextmanager
def stopped(stream: Kept) -> Iterator[None]:
    """Stop it; a person wants it to run again at the end."""
    set_desired(stream.subject, DesiredState.STOPPED, "a test")
    stream.reconciler.run()
    try:
        yield
    finally:
        set_desired(stream.subject, DesiredState.RUNNING, "a test")


@of_each_engine
def test_a_stream_whose_checkpoint_is_gone_is_not_started(stream: Kept, tell: Tell) -> None:
    """It starts again, from where it was, when the checkpoint is back."""
    before, (checkpoint,) = stream.look().generation, stream.spec.checkpoints
    with stopped(stream):
        dfs(stream, "-mv", checkpoint, f"{checkpoint}-elsewhere")
    refused = stream.supervisors.begin()
    assert refused.end() != 0
    assert stream.look().generation == before
    dfs(stream, "-mv", f"{checkpoint}-elsewhere", checkpoint)
    clock = Clock()
    stream.follow(before + 1)
    assert "is gone" in refused.said
    stream.conclude(tell, "checkpoint missing", "refused until it was back", clock.seconds)


@of_each_engine
def test_a_stream_whose_checkpoint_is_an_older_copy_is_not_started(stream: Kept, tell: Tell) -> None:
    before, (checkpoint,) = stream.look().generation, stream.spec.checkpoints
    # Drafts vanish while it is copied: its exit code says nothing.
    stream.minicluster.hdfs("dfs", "-cp", checkpoint, f"{checkpoint}-older", as_="streamer")
    stream.await_a_further_commit()
    with stopped(stream):
        dfs(stream, "-mv", checkpoint, f"{checkpoint}-newest")
        dfs(stream, "-mv", f"{checkpoint}-older", checkpoint)
    refused = stream.supervisors.begin()
    assert refused.end() != 0
    assert stream.look().generation == before
    dfs(stream, "-rm", "-r", "-skipTrash", checkpoint)
    dfs(stream, "-mv", f"{checkpoint}-newest", checkpoint)
    clock = Clock()
    stream.follow(before + 1)
    assert "older" in refused.said, refused.said
    stream.conclude(tell, "checkpoint of an older copy", "refused until the newest was back", clock.seconds)


@of_each_engine
def test_a_stream_whose_folder_can_not_be_written_keeps_running(stream: Kept, tell: Tell) -> None:
    """Nothing is stopped that nobody could claim the successor of."""
    before = stream.ask_for_restart()
    dfs(stream, "-chmod", "555", stream.subject.id.folder)
    try:
        refused = stream.supervisors.begin()
        assert refused.end() != 0
        assert stream.application(before).alive
        assert stream.look().generation == before
    finally:
        dfs(stream, "-chmod", "755", stream.subject.id.folder)
    clock = Clock()
    stream.follow(before + 1)
    assert "keeps running" in refused.said
    seen = "the old generation ran on; restarted when it could be written"
    stream.conclude(tell, "claim folder not writable", seen, clock.seconds)


def test_a_stream_that_died_of_a_full_quota_goes_on_when_it_is_raised(stream: Kept, tell: Tell) -> None:
    before = stream.look().generation
    used = stream.minicluster.hdfs("dfs", "-count", stream.data, as_="streamer").stdout.split()
    quota = str(int(used[0]) + int(used[1]) + 5)
    assert stream.minicluster.hdfs("dfsadmin", "-setQuota", quota, stream.data).returncode == 0
    try:
        await_that(lambda: not stream.application(before).alive, "its driver dies of the quota")
    finally:
        assert stream.minicluster.hdfs("dfsadmin", "-clrQuota", stream.data).returncode == 0
    clock = Clock()
    stream.follow(before + 1)
    assert "Quota" in stream.session.hdfs.read(f"{stream.subject.id.folder}/failed-{before:06d}")
    seen = f"generation {before} died of it and said so, {before + 1} follows"
    stream.conclude(tell, "quota full, then raised", seen, clock.seconds)
