"""`kstream leases` as a child process, as one of the minicluster's principals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.leases.lease import LeaseRules
from airflow_kstream.supervise.leases.session import open_lease_session
from tests.live.cli import cluster_file
from tests.live.streams import await_that, cluster

KSTREAM = (sys.executable, "-c", "from airflow_kstream.cli import main; main()")
NO_AGE = ("--min-age", "0s")


def await_leases_worn_off(minicluster: Minicluster) -> None:
    """Wait until the NameNode has been active for long enough to judge holders: a run may begin with its start."""
    with cluster(minicluster) as found, open_lease_session(found, found.watcher) as session:
        since = session.jmx.health().active_since or session.base.hdfs.now()
        await_that(lambda: session.base.hdfs.now() - since > LeaseRules().blackout, "the NameNode serves for long")


@dataclass(frozen=True)
class Commands:
    """`kstream leases` with the cluster's file, as a child process with its output apart."""

    cluster_file: Path

    def argv(self, *words: str) -> list[str]:
        return [*KSTREAM, "leases", *words, "--cluster", str(self.cluster_file)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*words), env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True, check=False
        )

    def json(self, *words: str) -> Any:
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def commands_as(minicluster: Minicluster, who: str, folder: Path, **more: Any) -> Commands:
    return Commands(cluster_file(minicluster, who, folder, **more))
