"""The configuration of a minicluster: its features and the lifetimes of its credentials."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from airflow_kstream.model.errors import InvalidInput


class Feature(StrEnum):
    """A feature beyond the basics: a KDC, one NameNode, DataNodes, a ResourceManager and a NodeManager.

    `flink` is Flink 1.20 on HDFS, and `flink-2` one of the next major version, for jobs in application mode; `ha` is a
    second NameNode; `kms` is a server for the keys of encryption zones; `rm-ha` is a second ResourceManager,
    with ZooKeeper; `tls` is HTTPS, and no HTTP, on all web servers.
    """

    FLINK = "flink"
    FLINK_2 = "flink-2"
    HA = "ha"
    HTTPFS = "httpfs"
    KAFKA = "kafka"
    KMS = "kms"
    PROXY_USER_PRIVILEGES = "proxy-user-privileges"
    RM_HA = "rm-ha"
    TLS = "tls"


DEFAULT_FEATURES = frozenset({Feature.HA, Feature.KAFKA})
FLINKS = (Feature.FLINK, Feature.FLINK_2)
# Files of three replicas, and XOR-2-1, the smallest of HDFS's erasure coding policies, need no more.
MOST_DATANODES = 3


@dataclass(frozen=True)
class MiniclusterConfig:
    """The folder, the features and the lifetimes of a minicluster; a value that can be written down and read back.

    `renew_interval` and `max_lifetime` are those of delegation tokens, of HDFS and of the ResourceManager alike;
    `ticket_lifetime` and `ticket_renew` are those of Kerberos tickets; `rpc_protection` is the value of
    hadoop.rpc.protection; `heartbeat` is how often the DataNode reports, in whole seconds, where Hadoop's default
    is 3 s; `expiry` is how long YARN waits for word from an ApplicationMaster or a NodeManager before it counts as
    lost; `namenode_java` are further options for the NameNodes' JVMs, which override the defaults; `daemon_settings`
    are further properties of the daemons, each with its file, which override what this package sets; `datanodes` is
    how many there are: a file has one replica regardless, unless its writer asks for more. Raises InvalidInput: when a
    token's renew interval is longer than its life, or the number of DataNodes is out of range.
    """

    root: Path
    features: frozenset[Feature] = DEFAULT_FEATURES
    renew_interval: timedelta = timedelta(days=1)
    max_lifetime: timedelta = timedelta(days=7)
    ticket_lifetime: timedelta = timedelta(minutes=10)
    ticket_renew: timedelta = timedelta(hours=1)
    realm: str = "KSTREAM.TEST"
    rpc_protection: str = "authentication"
    heartbeat: timedelta = timedelta(seconds=1)
    expiry: timedelta = timedelta(minutes=1)
    namenode_java: tuple[str, ...] = ()
    daemon_settings: tuple[tuple[str, str, str], ...] = ()
    datanodes: int = 1

    def __post_init__(self) -> None:
        # Processes are found by their working folder, which the system names without symbolic links.
        object.__setattr__(self, "root", Path(self.root).resolve())
        if not 1 <= self.datanodes <= MOST_DATANODES:
            raise InvalidInput(f"datanodes is {self.datanodes}; a minicluster has 1 to {MOST_DATANODES}")
        if not timedelta() < self.renew_interval <= self.max_lifetime:
            raise InvalidInput(
                f"renew_interval is {self.renew_interval} and max_lifetime {self.max_lifetime}; a renew interval is "
                "longer than nothing and at most as long as the maximum lifetime"
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "features": sorted(self.features),
            "datanodes": self.datanodes,
            "realm": self.realm,
            "rpc_protection": self.rpc_protection,
            "namenode_java": self.namenode_java,
            "daemon_settings": self.daemon_settings,
            **{name: getattr(self, name).total_seconds() for name in _DURATIONS},
        }

    @classmethod
    def from_json(cls, root: Path, data: dict[str, Any]) -> MiniclusterConfig:
        durations = {name: timedelta(seconds=data[name]) for name in _DURATIONS if name in data}
        protection = data.get("rpc_protection", cls.rpc_protection)
        features = frozenset(map(Feature, data["features"]))
        java = tuple(data.get("namenode_java", ()))
        settings = tuple((str(file), str(key), str(value)) for file, key, value in data.get("daemon_settings", ()))
        return cls(
            root,
            features,
            realm=data["realm"],
            rpc_protection=protection,
            namenode_java=java,
            daemon_settings=settings,
            datanodes=data.get("datanodes", cls.datanodes),
            **durations,
        )


_DURATIONS = ("renew_interval", "max_lifetime", "ticket_lifetime", "ticket_renew", "heartbeat", "expiry")
