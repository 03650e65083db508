"""Recoveries on the minicluster: the cluster as a principal, and files that a killed writer left open."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from shlex import join

from airflow_kstream.clients.hdfs.jmx import NameNodeJmx
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc, namenode_rpc
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster, record
from airflow_kstream.minicluster.java import hadoop
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import LeaseRules, Outcome, Recovery, Target
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.executor import (
    LeaseRecoverer,
    RecoveryResources,
    RecoveryRun,
    Watcher,
    execute_recoveries,
)
from airflow_kstream.supervise.leases.journal import Journal, JournalRecord, read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from airflow_kstream.supervise.leases.session import LeaseSession, open_lease_session
from tests.live.streams import cluster
from tests.live.writers import leave_open

HOME = f"/user/{getuser()}/recovery"
HASTY = LeaseRules(
    min_age=timedelta(0), settle=timedelta(seconds=1), leak_after=timedelta(seconds=2), blackout=timedelta(0)
)
_DEBUG_ADMIN = "org.apache.hadoop.hdfs.tools.DebugAdmin"


@dataclass
class Scene:
    """The cluster as streamer, who owns the files."""

    cluster: Cluster
    hdfs: Hdfs
    rpc: NameNodeRpc
    jmx: NameNodeJmx
    journal: str

    @property
    def identity(self) -> Identity:
        return self.cluster.watcher

    def targets(self, paths: Sequence[str]) -> list[Target]:
        return [Target(path, self.state(path).fingerprint, "a holder", "its holder is dead") for path in paths]

    def state(self, path: str) -> FileState:
        (state,) = self.rpc.states([path])
        assert isinstance(state, FileState), state
        return state

    def recover(
        self,
        targets: Sequence[Target],
        limits: RecoveryLimits | None = None,
        recoverer: Callable[[Cluster, Identity], LeaseRecoverer] = namenode_rpc,
    ) -> RecoveryRun:
        with (
            closing(recoverer(self.cluster, self.identity)) as opened,
            closing(Journal.begin(self.hdfs, self.journal, self.identity)) as journal,
        ):
            resources = RecoveryResources(self.rpc, opened, self.jmx.health, journal)
            return execute_recoveries(targets, resources, limits or RecoveryLimits(), Watcher())

    def records(self, run: RecoveryRun) -> list[JournalRecord]:
        return [record for record in read_journal(OwnFiles(self.hdfs), self.journal) if record.run == run.run_id]


@contextmanager
def scene(minicluster: Minicluster) -> Iterator[Scene]:
    with cluster(minicluster) as found, ExitStack() as opened:
        web = (found.namenodes, found.watcher, found.tls)
        yield Scene(
            found,
            opened.enter_context(closing(Hdfs(*web))),
            opened.enter_context(closing(namenode_rpc(found, found.watcher))),
            opened.enter_context(closing(NameNodeJmx(*web))),
            f"/user/{getuser()}/leases",
        )


@contextmanager
def lease_session(minicluster: Minicluster, who: str, do_as: str | None = None) -> Iterator[LeaseSession]:
    """The clients of all servers as one principal."""
    with cluster(minicluster, who) as found, open_lease_session(found, replace(found.watcher, do_as=do_as)) as session:
        yield session


@contextmanager
def paused(minicluster: Minicluster, daemon: str) -> Iterator[None]:
    minicluster.pause(daemon)
    try:
        yield
    finally:
        minicluster.resume(daemon)


def standby_first(minicluster: Minicluster, addresses: Sequence[str]) -> tuple[str, ...]:
    """Return these addresses of the NameNodes, of nn1 and then of nn2, with the standby's first."""
    return tuple(addresses if minicluster.active_namenode() == "nn2" else reversed(addresses))


def hdfs_command(minicluster: Minicluster, folder: Path) -> str:
    """Write the command `hdfs` of a Hadoop client, as far as `debug` needs it."""
    script = folder / "hdfs"
    java = join([*hadoop(record.read_site(minicluster.root), minicluster.conf_dir, "client")])
    script.write_text(f'#!/bin/sh\n[ "$1" = debug ] || exit 64\nshift\nexec {java} {_DEBUG_ADMIN} "$@"\n')
    script.chmod(0o755)
    return str(script)


def new_folder(name: str) -> str:
    return f"{HOME}/{name}-{time.time_ns()}"


def stuck(minicluster: Minicluster, folder: str, count: int, size: int = 100) -> list[str]:
    """Return open files of a killed writer."""
    paths = [f"{folder}/part-{number}" for number in range(count)]
    leave_open(minicluster, paths, size)
    return paths


def outcomes(run: RecoveryRun) -> Counter[Outcome]:
    return Counter(recovery.outcome for recovery in run.recoveries)


def the_one(run: RecoveryRun) -> Recovery:
    (recovery,) = run.recoveries
    return recovery
