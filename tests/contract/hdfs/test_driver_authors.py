"""What the Hadoop client in a driver's JVM tells of who wrote a file, and of tokens that it tries."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from getpass import getuser
from typing import Any

import pytest

from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.jobs import kstream_driver, kstream_tokens
from airflow_kstream.minicluster import Minicluster, record
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.live.recovering import lease_session
from tests.live.streams import JOBS

STATE = "/drivers/kstream"
FOLDER = f"{STATE}/orders-0badcafe"
SCRATCH = "/drivers/scratch"
MOVED = ("gen-000005", "gen-000006", "gen-000007")


@dataclass(frozen=True)
class Told:
    """What the driver told: whom it believes, and what becomes of four tokens."""

    believed: dict[str, Any]
    tokens: list[list[str]]


@pytest.fixture(scope="module")
def told(minicluster: Minicluster, owner: LeaseSession, superuser: LeaseSession) -> Told:
    """A folder of `supervisor` with the sticky bit, in a state_dir of `gateway`; everybody has written there.

    `watcher` has moved what the driver's user left where everybody can write: a file, one for nobody to read, a folder.
    """
    with ExitStack() as open_sessions:
        supervisor, gateway, stranger = (
            open_sessions.enter_context(lease_session(minicluster, user)).base.hdfs
            for user in ("supervisor", "gateway", "watcher")
        )
        superuser.base.hdfs.make_folder("/drivers", "777")
        gateway.make_folder(STATE, "777")
        supervisor.make_folder(FOLDER, "1777")
        for number, author in enumerate([owner.base.hdfs, supervisor, gateway, superuser.base.hdfs], 1):
            author.write(f"{FOLDER}/gen-{number:06d}", json.dumps({"generation": number}), permission="644")
        for name in ("gen-999999", "started-000001"):
            stranger.write(f"{FOLDER}/{name}", json.dumps({"generation": 999_999}))
        hdfs = owner.base.hdfs
        hdfs.make_folder(SCRATCH, "777")
        hdfs.write(f"{SCRATCH}/gen-000005", json.dumps({"generation": 4}))
        hdfs.write(f"{SCRATCH}/gen-000006", json.dumps({"generation": 6}), permission="000")
        hdfs.make_folder(f"{SCRATCH}/gen-000007", "755")
        for name in MOVED:
            stranger.rename_onto_nothing(f"{SCRATCH}/{name}", f"{FOLDER}/{name}")
    return told_by_driver(minicluster)


def told_by_driver(minicluster: Minicluster) -> Told:
    conf = [word for key, value in minicluster.spark_conf().items() for word in ("--conf", f"{key}={value}")]
    helpers = f"{kstream_driver.__file__},{kstream_tokens.__file__}"
    command = [find_spark_submit(), "--master", "local[1]", *conf, "--py-files", helpers, str(JOBS / "authors.py")]
    ended = subprocess.run(
        [*command, FOLDER],
        env=minicluster.client_env("streamer"),
        cwd=record.read_site(minicluster.root).folders.run,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("TOLD ")] or [ended.stderr[-3000:]]
    return Told(*json.loads(line.removeprefix("TOLD ")))


def test_a_driver_believes_its_own_user_and_the_owners_above_its_files(told: Told) -> None:
    """The folder's owner, that of state_dir, and that of the root; each file that says its generation."""
    assert told.believed["names"] == ["gen-000001", "gen-000002", "gen-000003", "gen-000004"]


def test_a_driver_learns_its_user_by_what_it_writes_beside_a_strangers_file(told: Told, owner: LeaseSession) -> None:
    """The NameNode names it otherwise than its principal. The stranger's file can't be deleted in a sticky folder."""
    assert told.believed["user"] == getuser()
    files = {file.name: file.owner for file in owner.base.hdfs.list(FOLDER)}
    assert files == {
        "gen-000001": getuser(),
        "gen-000002": "supervisor",
        "gen-000003": "gateway",
        "gen-000004": "hdfs",
        **dict.fromkeys(MOVED, getuser()),
        "gen-999999": "watcher",
        "started-000001": "watcher",
        "failed-000001": getuser(),
    }


def test_a_driver_tells_a_good_token_from_one_that_no_namenode_takes(told: Told) -> None:
    good, wrong, cancelled, _ = told.tokens
    assert good == ["taken", "used"]
    for bad in (wrong, cancelled):
        assert bad[1].startswith("refused: the NameNode does not take the token"), bad


def test_a_namenode_that_is_not_there_refuses_no_token(told: Told) -> None:
    assert told.tokens[3][1].startswith("not yet: the token for 127.0.0.1:9 can't be tried"), told.tokens[3]
