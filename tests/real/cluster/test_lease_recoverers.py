"""Recoveries by Hadoop's own tool are those by RPC, for the names that it accepts."""

from __future__ import annotations

import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import Outcome, Recovery
from tests.live.odd_names import ODD_NAMES
from tests.live.recovering import Scene, hdfs_command, stuck, the_one
from tests.live.writers import leave_open


@pytest.fixture
def debug(minicluster: Minicluster, tmp_path: Path) -> Callable[[Cluster, Identity], DebugRecoverer]:
    command = hdfs_command(minicluster, tmp_path)
    return lambda found, identity: DebugRecoverer(found, identity, binary=command)


def test_hadoops_own_tool_leads_to_the_same_recovery(
    minicluster: Minicluster, streamer: Scene, folder: str, debug: Callable[[Cluster, Identity], DebugRecoverer]
) -> None:
    ours, theirs = stuck(minicluster, folder, 2)
    native = the_one(streamer.recover(streamer.targets([ours])))
    by_tool = the_one(streamer.recover(streamer.targets([theirs]), recoverer=debug))
    apart = {"path", "started", "seconds", "stamp_before", "stamp_after"}
    assert _but(native, apart) == _but(by_tool, apart)
    assert by_tool.outcome is Outcome.CLOSED


def _but(recovery: Recovery, names: set[str]) -> dict[str, object]:
    return {name: value for name, value in recovery.to_json().items() if name not in names}


def test_hadoops_own_tool_does_not_accept_every_name(
    minicluster: Minicluster, streamer: Scene, folder: str, debug: Callable[[Cluster, Identity], DebugRecoverer]
) -> None:
    """RPC takes them all, and the tool those that are valid URIs."""
    paths = [f"{folder}/{name}" for name in ODD_NAMES]
    leave_open(minicluster, paths, 10)
    run = streamer.recover(streamer.targets(paths), recoverer=debug)
    closed = [Path(recovery.path).name for recovery in run.recoveries if recovery.outcome is Outcome.CLOSED]
    assert closed == ["not-composed-e\u0301", "semi;colon%41+plus#hash?query=1", "..."]
    refused = [recovery for recovery in run.recoveries if recovery.outcome is Outcome.NOT_TRIED]
    assert len(closed) + len(refused) == len(ODD_NAMES)
    assert all("only accepts paths that are valid URIs" in recovery.why for recovery in refused)
    assert run.stopped == ""


def test_the_tool_works_with_a_ticket_cache_of_its_own_and_leaves_nothing_behind(
    minicluster: Minicluster, streamer: Scene, tmp_path: Path
) -> None:
    spy = tmp_path / "spy"
    spy.write_text('#!/bin/sh\nenv >"$0.env"\nstat -c %a "${KRB5CCNAME#FILE:}" >"$0.mode"\nexit 1\n')
    spy.chmod(0o755)
    with closing(DebugRecoverer(streamer.cluster, streamer.identity, binary=str(spy))) as recoverer:
        assert isinstance(recoverer.request_recovery(["/any"])[0], Unavailable)
    environment = dict(line.split("=", 1) for line in Path(f"{spy}.env").read_text().splitlines() if "=" in line)
    cache = Path(environment["KRB5CCNAME"].removeprefix("FILE:"))
    assert Path(f"{spy}.mode").read_text().strip() == f"{stat.S_IRUSR | stat.S_IWUSR:o}"
    assert not cache.parent.exists()
    assert environment["HADOOP_CONF_DIR"] == str(minicluster.conf_dir)
    assert "HADOOP_PROXY_USER" not in environment
