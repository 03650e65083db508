"""The table of daemons: command, needs and readiness check of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from airflow_kstream.minicluster import httpfs, kafka, kms, zookeeper
from airflow_kstream.minicluster.answers import NotReady
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.java import hadoop, logging
from airflow_kstream.minicluster.site import DATANODES, Site
from airflow_kstream.minicluster.web import bean, connect
from airflow_kstream.minicluster.yarn import ask_nodemanager, ask_resourcemanager

_HDFS = "org.apache.hadoop.hdfs"
_YARN = "org.apache.hadoop.yarn.server"


@dataclass(frozen=True)
class Daemon:
    """One row. `needs` names daemons and preparations; those that are not in the plan count as done.

    It is part of a minicluster that has the `feature`, and of none that has the feature `without`; and, if it is a
    DataNode, of one that has so many.

    `ask` returns the daemon's answer. It raises NotReady, OSError or LookupError: when the daemon does not serve.
    """

    name: str
    ports: tuple[str, ...]
    command: Callable[[Site, str], list[str]]
    ask: Callable[[Site], str]
    needs: tuple[str, ...] = ("kdc", "hadoop-jars")
    feature: Feature | None = None
    without: Feature | None = None

    def belongs_to(self, site: Site) -> bool:
        features = site.plan.features
        wanted = (self.feature is None or self.feature in features) and self.without not in features
        return wanted and (self.name not in DATANODES or self.name in site.datanodes)


def daemons_of(site: Site) -> tuple[Daemon, ...]:
    """Return the daemons that the plan calls for, each after its needs."""
    return tuple(row for row in DAEMONS if row.belongs_to(site))


def port_names() -> list[str]:
    """Return a name for every port of every daemon; a daemon's first port is its main address."""
    return [port for row in DAEMONS for port in row.ports]


def namenode_options(site: Site, name: str) -> list[str]:
    """Return the options that turn the shared configuration into that of one NameNode."""
    return [f"-Ddfs.ha.namenode.id={name}", f"-Ddfs.namenode.name.dir={(site.folders.data / name).as_uri()}"]


def datanode_options(site: Site, name: str) -> list[str]:
    """Return the options that turn the shared configuration into that of one DataNode."""
    settings = {
        "data.dir": site.folders.blocks(name),
        "address": site.address(f"{name}-data"),
        f"{site.scheme}.address": site.address(f"{name}-web"),
        "ipc.address": site.address(f"{name}-rpc"),
    }
    return [f"-Ddfs.datanode.{key}={value}" for key, value in settings.items()]


def _kdc_command(site: Site, _: str) -> list[str]:
    return site.kdc.command()


def _hadoop_command(main: str, site: Site, name: str) -> list[str]:
    return [*hadoop(site, site.folders.daemon_conf, name, *logging(site, name), "-Xmx256m", f"-Dproc_{name}"), main]


def _resourcemanager_command(site: Site, name: str) -> list[str]:
    # Both have one configuration, and the same host: their names tell them apart.
    options = [f"-Dyarn.resourcemanager.ha.id={name}"] if len(site.resourcemanagers) > 1 else []
    return [*_hadoop_command(f"{_YARN}.resourcemanager.ResourceManager", site, name), *options]


def _datanode_command(site: Site, name: str) -> list[str]:
    # It starts together with the NameNodes: if its retries end before they serve, it sleeps for five seconds. With
    # others, which it asks about their replicas in a recovery, it gives up a dead one after ten, as Hadoop does.
    patience = f"-Dipc.client.connect.max.retries={600 if len(site.datanodes) == 1 else 100}"
    return [*_hadoop_command(f"{_HDFS}.server.datanode.DataNode", site, name), patience, *datanode_options(site, name)]


def _namenode_command(site: Site, name: str) -> list[str]:
    log4j = [*logging(site, name, "log4j-audit.properties"), f"-Dkstream.audit={site.folders.log(f'{name}-audit')}"]
    java = hadoop(site, site.folders.daemon_conf, name, *log4j, "-Xmx512m", *site.plan.namenode_java, f"-Dproc_{name}")
    return [*java, f"{_HDFS}.server.namenode.NameNode", *namenode_options(site, name)]


def _ask_kdc(site: Site) -> str:
    connect(site, "kdc")
    return f"accepts connections for {site.plan.realm}"


def _ask_journalnode(site: Site) -> str:
    bean(site, "journalnode-web", "service=JournalNode,name=JournalNodeInfo")
    return "serves the journal"


def _ask_namenode(name: str, site: Site) -> str:
    return str(bean(site, f"{name}-web", "service=NameNode,name=NameNodeStatus")["State"])


def _ask_datanode(name: str, site: Site) -> str:
    actors = json.loads(bean(site, f"{name}-web", "service=DataNode,name=DataNodeInfo")["BPServiceActorInfo"])
    states = [actor["ActorState"] for actor in actors]
    if states != ["RUNNING"] * len(site.namenodes):
        raise NotReady(f"registered with {states.count('RUNNING')} of {len(site.namenodes)} NameNodes")
    return f"registered with {len(states)} NameNodes"


def _datanode(name: str) -> Daemon:
    ports = tuple(f"{name}-{port}" for port in ("data", "web", "rpc"))
    return Daemon(name, ports, _datanode_command, partial(_ask_datanode, name))


def _resourcemanager(name: str, *needs: str, feature: Feature | None = None, without: Feature | None = None) -> Daemon:
    ports = tuple(f"{name}-{port}" for port in ("web", "rpc", "scheduler", "tracker", "admin"))
    ask = partial(ask_resourcemanager, name)
    return Daemon(name, ports, _resourcemanager_command, ask, ("kdc", "hadoop-jars", *needs), feature, without)


DAEMONS = (
    Daemon("kdc", ("kdc",), _kdc_command, _ask_kdc, needs=("realm",)),
    Daemon(
        "zookeeper",
        ("zookeeper",),
        zookeeper.command,
        zookeeper.ask,
        needs=("hadoop-jars",),
        feature=Feature.RM_HA,
    ),
    Daemon(
        "journalnode",
        ("journalnode-rpc", "journalnode-web"),
        partial(_hadoop_command, f"{_HDFS}.qjournal.server.JournalNode"),
        _ask_journalnode,
        feature=Feature.HA,
    ),
    Daemon("nn1", ("nn1-web", "nn1-rpc"), _namenode_command, partial(_ask_namenode, "nn1"), needs=("kdc", "format")),
    Daemon(
        "nn2",
        ("nn2-web", "nn2-rpc"),
        _namenode_command,
        partial(_ask_namenode, "nn2"),
        needs=("kdc", "format"),
        feature=Feature.HA,
    ),
    *map(_datanode, DATANODES),
    _resourcemanager("resourcemanager", without=Feature.RM_HA),
    _resourcemanager("rm1", "zookeeper", feature=Feature.RM_HA),
    _resourcemanager("rm2", "zookeeper", feature=Feature.RM_HA),
    Daemon(
        "nodemanager",
        ("nodemanager-web", "nodemanager-rpc", "nodemanager-localizer"),
        partial(_hadoop_command, f"{_YARN}.nodemanager.NodeManager"),
        ask_nodemanager,
    ),
    Daemon(
        "httpfs",
        ("httpfs-web",),
        httpfs.command,
        httpfs.ask,
        needs=("directories", "httpfs-jars"),
        feature=Feature.HTTPFS,
    ),
    Daemon("kms", ("kms-web",), kms.command, kms.ask, needs=("kdc", "hadoop-jars", "kms-jars"), feature=Feature.KMS),
    Daemon(
        "kafka",
        ("kafka", "kafka-controller"),
        kafka.command,
        kafka.ask,
        needs=("kdc", "kafka-format"),
        feature=Feature.KAFKA,
    ),
)
