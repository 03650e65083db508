"""A stream under supervision: the argument of almost every step."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.secrets import LocalSecrets, Secrets
from airflow_kstream.supervise.streams.state_folder import StreamFolder


@dataclass(frozen=True)
class StreamRun:
    """One stream as declared, the session as its identity, its engine, and the source of its secrets."""

    session: ClusterSession
    spec: StreamSpec
    engine: Engine
    secrets: Secrets = field(default_factory=LocalSecrets)

    @property
    def cluster(self) -> Cluster:
        return self.session.cluster

    @property
    def id(self) -> StreamId:
        return StreamId(self.spec.name, self.cluster.state_dir)

    @property
    def folder(self) -> StreamFolder:
        return StreamFolder(self.session.hdfs, self.id)
