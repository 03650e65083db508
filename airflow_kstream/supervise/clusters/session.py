"""The servers of one cluster, as one identity."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.identity import Identity


@dataclass(frozen=True)
class ClusterSession:
    """Sessions that are open, made by `open_session` and closed with it."""

    cluster: Cluster
    identity: Identity
    hdfs: Hdfs
    yarn: ResourceManager
    kafka: KafkaEnds


@contextmanager
def open_session(cluster: Cluster, identity: Identity) -> Iterator[ClusterSession]:
    """Open the session. No request goes to any server yet."""
    hdfs = Hdfs(cluster.namenodes, identity, cluster.tls)
    yarn = ResourceManager(cluster.resourcemanagers, identity, cluster.tls)
    try:
        yield ClusterSession(cluster, identity, hdfs, yarn, KafkaEnds(identity, cluster.tls.ca))
    finally:
        hdfs.close()
        yarn.close()
