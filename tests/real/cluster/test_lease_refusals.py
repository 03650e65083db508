"""`kstream leases` on files that it leaves open: because of a missing permission, or because they are young."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from tests.live.lease_commands import NO_AGE, Commands, await_leases_worn_off, commands_as
from tests.live.streams import cluster
from tests.live.writers import leave_open
from tests.live.writers.hadoop_says import is_open

READABLE = "/tmp/lease-commands/readable"


@pytest.fixture(scope="module")
def kstream(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """`kstream leases` as the owner of the files."""
    return commands_as(minicluster, "streamer", tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def stranger(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """`kstream leases` as a user that may read the files and not write them, with a state_dir of its own."""
    return commands_as(minicluster, "watcher", tmp_path_factory.mktemp("cluster"), state_dir="/user/watcher")


@pytest.fixture(scope="module")
def readable(minicluster: Minicluster) -> Iterator[str]:
    """A killed writer's file in a folder that every user may read."""
    leave_open(minicluster, [READABLE], size=10)
    await_leases_worn_off(minicluster)
    yield READABLE
    with cluster(minicluster) as found:
        hdfs = Hdfs(found.namenodes, found.watcher, found.tls)
        hdfs.delete(READABLE, recursive=True)
        hdfs.close()


def test_a_user_without_write_access_learns_that_the_file_was_not_recovered(
    minicluster: Minicluster, stranger: Commands, readable: str
) -> None:
    """Only users that may write a file learn from the NameNode whether its holder is alive."""
    done = stranger.run("recover", readable, *NO_AGE)

    assert done.returncode == 1, done.stderr
    assert "whose holder could not be probed (AccessControlException: Permission denied: user=watcher" in done.stderr
    assert readable in done.stdout
    assert "Permission denied: user=watcher, access=WRITE" in done.stdout
    assert "need the right to write the file" in done.stdout
    assert "watcher@KSTREAM.TEST is not a superuser" in done.stderr
    assert is_open(minicluster, readable)
    told = [record for record in stranger.json("history") if record["path"] == readable]
    assert "Permission denied" in told[-1]["why"]


def test_a_refusal_is_foreseen_by_explain_and_by_a_dry_run(stranger: Commands, readable: str) -> None:
    explained = stranger.run("explain", readable, *NO_AGE)
    [planned] = stranger.json("recover", readable, *NO_AGE, "--dry-run")

    assert "leave alone: it is unknown: could not determine whether its holder is alive" in explained.stdout
    assert "probe its holder" not in explained.stdout
    assert "Permission denied: user=watcher, access=WRITE" in planned["plan"][readable]


def test_young_files_are_shown_with_the_reason_why_they_are_left_open(kstream: Commands, readable: str) -> None:
    done = kstream.run("recover", readable, "--min-age", "1h")

    assert done.returncode == 0, done.stderr
    assert "files younger than min_age, 1h, are left alone" in done.stdout
    assert "1 open files; nothing to recover; 1 younger than min_age, 1h" in done.stderr
    assert "recover it with min_age 0s. A growing file and a living holder's are left alone" in done.stderr
