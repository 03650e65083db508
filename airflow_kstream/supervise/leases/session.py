"""The clients that find open files and recover their leases, on one cluster as one identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from airflow_kstream.clients.hdfs.jmx import NameNodeJmx
from airflow_kstream.clients.hdfs.leases import HolderAnswer, LeaseHdfs, LeaseHdfsPool, ask_holders
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc, namenode_rpc
from airflow_kstream.clients.hdfs.replicas import ReplicaLengths
from airflow_kstream.model.clusters.authors import FolderKind
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.state_dir import own_folder


@dataclass(frozen=True)
class LeaseSession:
    """Open sessions. `rpc` is None if the connection names no Hadoop conf folder: then everything goes by HTTP.

    `lengths` measures what readers get of open files. `dead_holders` are those that probes of this session found
    dead, each with the NameNode's time of that.
    """

    base: ClusterSession
    web: LeaseHdfs
    pool: LeaseHdfsPool
    jmx: NameNodeJmx
    rpc: NameNodeRpc | None
    lengths: ReplicaLengths | LeaseHdfsPool
    dead_holders: dict[str, datetime] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        return self.base.cluster

    @property
    def identity(self) -> Identity:
        return self.base.identity

    @cached_property
    def folder(self) -> str:
        """Return the folder in state_dir of this user's history and journal."""
        return own_folder(self.base.hdfs, self.cluster.state_dir, FolderKind.LEASES)

    def ask_holders(self, paths: Sequence[str]) -> list[HolderAnswer | KstreamError]:
        """Probe whether the holders of these open files' leases live: `LeaseHdfs.ask_holder` says what that does."""
        return ask_holders(self.pool, self.rpc, paths)

    def holders(self, paths: Sequence[str]) -> list[str | None]:
        """Return the names of these files' holders, None where nobody tells. It touches no lease."""
        return self.rpc.holders(paths) if self.rpc else [None] * len(paths)

    @property
    def states(self) -> NameNodeRpc | LeaseHdfsPool:
        """Return the client for many files' states: a thousand a second by RPC, some hundred by HTTP."""
        return self.rpc or self.pool


@contextmanager
def open_lease_session(cluster: Cluster, identity: Identity) -> Iterator[LeaseSession]:
    """Open the sessions. No request goes to any server yet."""
    web = (cluster.namenodes, identity, cluster.tls)
    with ExitStack() as opened:
        pool = opened.enter_context(closing(LeaseHdfsPool(*web)))
        rpc = opened.enter_context(closing(namenode_rpc(cluster, identity))) if cluster.hadoop_conf_dir else None
        yield LeaseSession(
            base=opened.enter_context(open_session(cluster, identity)),
            web=opened.enter_context(closing(LeaseHdfs(*web))),
            pool=pool,
            jmx=opened.enter_context(closing(NameNodeJmx(*web))),
            rpc=rpc,
            lengths=ReplicaLengths(rpc, pool) if rpc else pool,
        )
