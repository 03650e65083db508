"""Each scene of a stuck file is what it claims to be, as Hadoop's own tools confirm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.supervise.triage.catalogue import own_catalogue
from airflow_kstream.supervise.triage.scan import triage_path
from tests.live.streams import await_that, cluster
from tests.live.writers import (
    Writer,
    flink_like_bucket,
    leave_bucket,
    leave_open,
    native_writer,
    pattern,
    spark_stream_killed_in_the_middle,
    writer,
)
from tests.live.writers.children import Refused
from tests.live.writers.hadoop_says import (
    content,
    fsck_says,
    is_open,
    located,
    open_files,
    soft_probe,
    visible_length,
)


@pytest.fixture
def folder(minicluster: Minicluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A name on HDFS for this test alone; deleting it takes the leases of its open files with it."""
    place = f"/user/{getuser()}/{request.function.__name__}"
    yield place
    with cluster(minicluster) as found:
        hdfs = Hdfs(found.namenodes, found.watcher, found.tls)
        hdfs.delete(place, recursive=True)
        hdfs.close()


@pytest.fixture
def living(minicluster: Minicluster) -> Iterator[Writer]:
    with writer(minicluster) as client:
        yield client


def recover(minicluster: Minicluster, path: str) -> None:
    done = minicluster.hdfs("debug", "recoverLease", "-path", path, "-retries", "5", as_="streamer")
    assert f"recoverLease SUCCEEDED on {path}" in done.stdout, done.stderr


NAMES = ("plain", "two words", "a\ttab", "two\nlines", "ü 流", "[a-z]*{x,y}?", "50%25", "a+b&c=d#e")


def test_the_files_of_a_killed_writer_stay_open_and_keep_what_it_flushed(minicluster: Minicluster, folder: str) -> None:
    paths = [f"{folder}/{name}" for name in NAMES]
    with writer(minicluster) as killed:
        for path in paths:
            killed.leave(path, 1000)
            killed.write(path, 500)
        killed.kill()
    assert open_files(minicluster, folder) == dict.fromkeys(paths, killed.holder)
    assert {path: content(minicluster, path) for path in paths} == dict.fromkeys(paths, pattern(1000))


def test_a_writer_that_exits_closes_its_files_even_those_that_it_forgot(minicluster: Minicluster, folder: str) -> None:
    with writer(minicluster) as tidy:
        tidy.leave(f"{folder}/kept", 10)
        tidy.leave(f"{folder}/forgotten", 10)
        tidy.abandon(f"{folder}/forgotten")
    assert open_files(minicluster, folder) == {}
    assert content(minicluster, f"{folder}/forgotten") == pattern(10)


def test_a_lease_that_leaks_outlives_the_soft_limit_that_a_killed_writers_does_not(
    minicluster: Minicluster, folder: str, living: Writer, tmp_path: Path
) -> None:
    """A probe of the killed writer's file shows when the limit of 60 seconds has passed for both."""
    dead, leaked = f"{folder}/dead", f"{folder}/leaked"
    living.leave(leaked, 100)
    living.leave(f"{folder}/other", 100)
    living.abandon(leaked)
    with writer(minicluster) as killed:
        killed.leave(dead, 100)
        killed.kill()
    assert soft_probe(minicluster, dead).exception == "AlreadyBeingCreatedException"
    await_that(
        lambda: soft_probe(minicluster, dead).exception != "AlreadyBeingCreatedException", "the soft limit passes"
    )
    refusal = soft_probe(minicluster, leaked)
    assert refusal.exception == "AlreadyBeingCreatedException"
    assert f"currently owned by {living.holder}" in refusal.message
    log = tmp_path / "refused.log"
    log.write_text(f"{refusal.exception}: {refusal.message}\n")
    assert triage_path(log, own_catalogue()).cause == "file-held-by-other"
    await_that(lambda: not is_open(minicluster, dead), "the probe's recovery closes the killed writer's file")
    assert content(minicluster, dead) == pattern(100)
    assert set(open_files(minicluster, folder)) == {leaked, f"{folder}/other"}


def test_a_slow_writer_grows_for_its_readers_while_the_namenode_sees_no_change(
    minicluster: Minicluster, folder: str, living: Writer
) -> None:
    path = f"{folder}/slow"
    living.leave(path, 100)
    known = located(minicluster, path)["lastLocatedBlock"]["block"]
    living.grow(path, seconds=0.2)
    await_that(lambda: visible_length(minicluster, path) >= 100 + 5 * 251, "it grew five times")
    assert located(minicluster, path)["lastLocatedBlock"]["block"] == known
    living.close(path)
    assert content(minicluster, path) == pattern(visible_length(minicluster, path))


def test_only_a_sync_that_updates_the_length_tells_the_namenode_of_growth(
    minicluster: Minicluster, folder: str, living: Writer
) -> None:
    path = f"{folder}/synced"
    living.leave(path, 100)
    living.write(path, 100)
    living.hsync(path)
    before = located(minicluster, path)["lastLocatedBlock"]["block"]["numBytes"]
    living.hsync(path, update_length=True)
    after = located(minicluster, path)["lastLocatedBlock"]["block"]["numBytes"]
    assert (before, after) == (100, 200)


def test_an_appended_file_is_open_again_by_another_holder(
    minicluster: Minicluster, folder: str, living: Writer
) -> None:
    path = f"{folder}/appended"
    living.leave(path, 100)
    living.close(path)
    with writer(minicluster) as killed:
        assert killed.append(path) == 100
        killed.write(path, 50)
        killed.hflush(path)
        killed.kill()
    assert open_files(minicluster, folder) == {path: killed.holder}
    assert content(minicluster, path) == pattern(150)


def test_a_file_that_is_renamed_while_open_is_open_under_its_other_name(
    minicluster: Minicluster, folder: str, living: Writer
) -> None:
    living.leave(f"{folder}/before", 100)
    living.rename(f"{folder}/before", f"{folder}/after")
    living.write(f"{folder}/after", 100)
    living.hflush(f"{folder}/after")
    assert open_files(minicluster, folder) == {f"{folder}/after": living.holder}
    assert visible_length(minicluster, f"{folder}/after") == 200


def test_a_task_interrupted_in_close_leaves_its_file_open_while_its_client_lives(
    minicluster: Minicluster, folder: str, living: Writer
) -> None:
    """The seed: close() is interrupted, the restored task renames the file, the client's other streams go on."""
    living.leave(f"{folder}/other", 10)
    bucket = leave_bucket(living, folder)
    assert set(open_files(minicluster, folder)) == {f"{folder}/other", bucket.part}
    assert "OPENFORWRITE" in next(
        row for row in fsck_says(minicluster, folder).splitlines() if row.startswith(bucket.part)
    )
    with pytest.raises(Refused, match="AlreadyBeingCreatedException"):
        living.append(bucket.part)


def test_a_bucket_of_a_dead_flink_has_more_bytes_than_its_companion_grants(
    minicluster: Minicluster, folder: str
) -> None:
    bucket = flink_like_bucket(minicluster, folder, valid_length=1000, flushed=1700)
    assert list(open_files(minicluster, folder)) == [bucket.part]
    # Two bytes of length, then the number: Java's writeUTF.
    assert content(minicluster, bucket.companion) == b"\x00\x041000"
    recover(minicluster, bucket.part)
    assert content(minicluster, bucket.part) == pattern(1700)


def test_one_native_client_holds_hundreds_of_files_open_dead_or_alive(minicluster: Minicluster, folder: str) -> None:
    paths = [f"{folder}/{number}" for number in range(300)]
    with native_writer(minicluster, paths, size=64) as alive:
        while_alive = open_files(minicluster, folder)
        alive.kill()
    assert set(while_alive) == set(paths)
    assert len(set(while_alive.values())) == 1
    assert open_files(minicluster, folder) == while_alive
    assert content(minicluster, paths[-1]) == pattern(64)


def test_masses_are_left_open_by_several_writers(minicluster: Minicluster, folder: str) -> None:
    leave_open(minicluster, [f"{folder}/{number}" for number in range(1200)], size=0)
    found = open_files(minicluster, folder)
    assert len(found) == 1200
    assert len(set(found.values())) == 2


def test_a_killed_spark_stream_leaves_its_whole_offsets_in_an_open_file(minicluster: Minicluster, folder: str) -> None:
    checkpoint = f"{folder}/checkpoint"
    killed = spark_stream_killed_in_the_middle(minicluster, checkpoint)
    assert list(open_files(minicluster, checkpoint)) == [killed.offsets]
    assert killed.offsets.startswith(f"{checkpoint}/offsets/.{killed.batch}.")
    assert killed.offsets.endswith(".tmp")
    recover(minicluster, killed.offsets)
    version, metadata, offset = content(minicluster, killed.offsets).decode().splitlines()
    assert (version, int(offset) >= 0) == ("v1", True)
    assert "batchTimestampMs" in json.loads(metadata)
