"""The servers of one cluster, as one identity."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from airflow_kstream.clients.hadoop_conf import rpc_conf
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.clients.yarn_rpc import ResourceManagerRpc
from airflow_kstream.model.clusters.allow import covers
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.progress import TopicsAt
from airflow_kstream.model.streams.stream_policies import KafkaPolicy, Offsets
from airflow_kstream.supervise.clusters.copies import Copies
from airflow_kstream.supervise.clusters.declarations import Declarations
from airflow_kstream.supervise.clusters.orders import Orders
from airflow_kstream.supervise.clusters.state_dir import StateDir
from airflow_kstream.supervise.clusters.told import ToldNotes


@dataclass(frozen=True)
class ClusterSession:
    """Sessions that are open, made by `open_session` and closed with it."""

    cluster: Cluster
    identity: Identity
    hdfs: Hdfs
    yarn: ResourceManager
    kafka: KafkaEnds

    def at(self, state_dir: str) -> ClusterSession:
        """Return the same sessions for another state_dir of this filesystem; itself, if it is that one."""
        if state_dir.rstrip("/") == self.cluster.state_dir:
            return self
        return replace(self, cluster=replace(self.cluster, state_dir=state_dir.rstrip("/")))

    def topic_ends(self, kafka: KafkaPolicy, planned: Offsets) -> Offsets:
        """Return where these partitions end, asked of brokers that the connection allows.

        Raises Denied: when the connection does not allow them. Raises as `KafkaEnds.of`.
        """
        self._require_allowed(kafka, "ask Kafka where topics end")
        return self.kafka.of(kafka, planned)

    def topics_at(self, kafka: KafkaPolicy, topics: Collection[str], moment: datetime) -> TopicsAt:
        """Return what these topics had at a moment, as `topic_ends` does. Raises as that."""
        self._require_allowed(kafka, "ask Kafka what topics had at a moment")
        return self.kafka.at(kafka, topics, moment)

    def _require_allowed(self, kafka: KafkaPolicy, tried: str) -> None:
        """Check the brokers before anybody logs in: who names them gets a ticket of ours there."""
        allow = self.cluster.allow
        beyond = [each for each in kafka.brokers if allow is not None and not covers(allow.brokers, each)]
        if beyond:
            why = f"connection {self.cluster.name} does not allow brokers: {', '.join(beyond)}"
            raise Denied(why, tried=tried, principal=str(self.identity))

    @cached_property
    def state(self) -> StateDir:
        """Return the connection's state_dir, with who may speak there."""
        return StateDir(self.hdfs, self.cluster.state_dir)

    @cached_property
    def copies(self) -> Copies:
        """Return the copies of declarations that supervisors keep in it."""
        return Copies(self.hdfs, self.state)

    @cached_property
    def declarations(self) -> Declarations:
        """Return what supervisors keep in it of declarations: which there are, and their policies."""
        return Declarations(self.hdfs, self.state)

    @cached_property
    def orders(self) -> Orders:
        """Return the orders of persons in it."""
        return Orders(self.hdfs, self.state)

    @cached_property
    def told(self) -> ToldNotes:
        """Return the notes in it of what was told."""
        return ToldNotes(self.hdfs, self.state)


@contextmanager
def open_session(cluster: Cluster, identity: Identity) -> Iterator[ClusterSession]:
    """Open the session. No request goes to any server yet."""
    hdfs = Hdfs(cluster.namenodes, identity, cluster.tls)
    yarn = ResourceManager(
        cluster.resourcemanagers, identity, cluster.tls, lambda: ResourceManagerRpc(rpc_conf(cluster), identity)
    )
    try:
        yield ClusterSession(cluster, identity, hdfs, yarn, KafkaEnds(identity, cluster.tls.ca))
    finally:
        hdfs.close()
        yarn.close()
