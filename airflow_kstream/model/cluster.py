"""A kerberized cluster, as a connection describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_kstream.model.identity import Identity


@dataclass(frozen=True)
class Tls:
    """Verification is on; `ca` names the file of a private authority."""

    ca: str | None = None

    @property
    def verify(self) -> str | bool:
        return self.ca or True


@dataclass(frozen=True)
class Cluster:
    """Where the servers are, and as whom we watch them.

    `resourcemanagers` and `namenodes` are base URLs of their web addresses, all members of an HA pair.
    `state_dir` is an absolute HDFS path outside every checkpoint. `watcher` needs no more than the right to view.
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
