"""A kerberized cluster, as a connection describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.client_environment import ClientSettings
from airflow_kstream.model.kerberos.identity import Identity


@dataclass(frozen=True)
class Tls:
    """The TLS settings. Verification is always on; `ca` is the file of a private authority, None for the system's."""

    ca: str | None = None

    @property
    def verify(self) -> str | bool:
        return self.ca or True


@dataclass(frozen=True)
class Cluster:
    """The servers of a cluster and the identity that watches them.

    `resourcemanagers` and `namenodes` are base URLs of their web addresses, all members of an HA pair.
    `state_dir` is an absolute HDFS path outside every checkpoint. `watcher` should be a supervisor of it; to look, it
    needs only the right to view. `allow` bounds what declarations may use beside what the connection has, None for no
    bound.
    """

    name: str
    resourcemanagers: tuple[str, ...]
    namenodes: tuple[str, ...]
    default_fs: str
    watcher: Identity
    state_dir: str
    hadoop_conf_dir: str | None = None
    krb5_conf: str | None = None
    tls: Tls = Tls()
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    client: ClientSettings = field(default_factory=ClientSettings)
    allow: Allow | None = None
