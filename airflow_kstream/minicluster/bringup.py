"""The start of a minicluster: a table of steps, and the start of one daemon."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from airflow_kstream.minicluster import (
    class_archive,
    flink,
    hadoop_conf,
    hdfs,
    jars,
    kafka,
    record,
    spark_classes,
    tls,
    zookeeper,
)
from airflow_kstream.minicluster.config import FLINKS, Feature, MiniclusterConfig
from airflow_kstream.minicluster.daemons import Daemon, daemons_of, port_names
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.java import environment
from airflow_kstream.minicluster.ports import free_ports
from airflow_kstream.minicluster.processes import Identity, Launch, below, spawn
from airflow_kstream.minicluster.readiness import Started, await_serving, size
from airflow_kstream.minicluster.site import DATANODES, Site
from airflow_kstream.minicluster.startup import StartupTask
from airflow_kstream.model.errors import MiniclusterError


@dataclass(frozen=True)
class Preparation:
    """Work that is not a daemon. Needs that are not in the plan count as done.

    `is_done` returns True if an earlier minicluster on this machine has done the work for all later ones.
    """

    name: str
    needs: tuple[str, ...]
    work: Callable[[Site], object]
    feature: Feature | None = None
    is_done: Callable[[], bool] = lambda: False


def begin(plan: MiniclusterConfig) -> Site:
    """Lay out folders, ports and configuration. Raises MiniclusterError: when a minicluster runs in the folder, or it
    is not a folder for one."""
    folders = Folders(plan.root)
    if processes(folders):
        down = f"./kstream minicluster down --root {shlex.quote(str(plan.root))}"
        raise MiniclusterError(
            f"A minicluster is up in {plan.root}, and was left alone: choose another folder, or end it, with Ctrl-C "
            f"where `./kstream up` or `./kstream demo` runs it, else with `{down}`"
        )
    folders.make_private()
    folders.create()
    site = Site(plan, free_ports(port_names()))
    record.write_site(site)
    hadoop_conf.write_configuration(site)
    kafka.write_configuration(site)
    zookeeper.write_configuration(site)
    if Feature.TLS in plan.features:
        tls.create(site)
    return site


def steps(site: Site) -> list[StartupTask]:
    """Return the remaining steps of a minicluster that `begin` prepared."""
    wanted = (None, *site.plan.features)
    preparations = [row for row in _PREPARATIONS if row.feature in wanted and not row.is_done()]
    daemons = daemons_of(site)
    names = frozenset([row.name for row in preparations] + [row.name for row in daemons])
    return [
        *(StartupTask(row.name, partial(_prepare, row, site), names & {*row.needs}) for row in preparations),
        *(StartupTask(row.name, partial(start, site, row), names & {*row.needs}) for row in daemons),
    ]


def start(site: Site, daemon: Daemon, abandoned: threading.Event) -> None:
    """Start a daemon and wait until it serves. Raises MiniclusterError: when it fails, with the line of its log."""
    folders = site.folders
    logs = (folders.log(daemon.name), folders.logs / f"{daemon.name}.out")
    skip = tuple(map(size, logs))
    variables = environment(site, folders.daemon_conf)
    launch = Launch(daemon.command(site, daemon.name), variables, folders.run / daemon.name, logs[1])
    identity = spawn(launch)
    record.write_process(folders, daemon.name, identity)
    await_serving(site, Started(daemon, identity, logs, skip), abandoned)


def processes(folders: Folders) -> list[Identity]:
    """Return all processes of this folder: daemons, and YARN's containers with their children."""
    recorded = [identity for identity in record.read_processes(folders).values() if identity.process()]
    pids = {identity.pid for identity in recorded}
    return [*recorded, *(found for found in below(folders.run, folders.containers) if found.pid not in pids)]


def _prepare(row: Preparation, site: Site, _: threading.Event) -> None:
    row.work(site)


def _fetch_hadoop(_: Site) -> None:
    jars.hadoop_jars()
    jars.native_library()


def _fetch_kafka(_: Site) -> None:
    jars.kafka_jars()
    jars.kafka_connector_jars()


def _archive_hadoop(site: Site) -> None:
    class_archive.build(jars.hadoop_jars(), site.folders.hadoop_classes)


def _archive_kafka(site: Site) -> None:
    class_archive.build(jars.kafka_jars(), site.folders.kafka_classes)


def _make_active(site: Site) -> None:
    hdfs.administer(site, "-transitionToActive", site.namenodes[0])


def _fetch_flink(feature: Feature, _: Site) -> None:
    jars.flink_jars(feature)
    jars.flink_connector_jars(feature)


def _flink(feature: Feature) -> tuple[Preparation, Preparation]:
    fetched = f"{feature}-jars"
    cached = partial(jars.are_cached, str(feature), f"{feature}-kafka")
    return (
        Preparation(fetched, (), partial(_fetch_flink, feature), feature, cached),
        Preparation(
            f"{feature}-on-hdfs",
            ("hadoop-jars", "directories", *DATANODES, fetched),
            lambda site: flink.put_on_hdfs(site, feature),
            feature,
        ),
    )


_SERVING = ("directories", "nn2", *DATANODES, "resourcemanager", "rm1", "rm2", "nodemanager", "kafka")
_PREPARATIONS = (
    Preparation("hadoop-jars", (), _fetch_hadoop, is_done=lambda: jars.are_cached("hadoop", "native")),
    Preparation("realm", (), lambda site: site.kdc.create()),
    Preparation("format", ("hadoop-jars", "kdc", "journalnode"), hdfs.format_namenodes),
    # Hadoop refuses to make one active while it can't ask the other one.
    Preparation("active", ("nn1", "nn2"), _make_active, Feature.HA),
    Preparation("directories", ("nn1", "active"), hdfs.make_directories),
    Preparation("kafka-jars", (), _fetch_kafka, Feature.KAFKA, is_done=lambda: jars.are_cached("kafka", "spark_kafka")),
    Preparation(
        "httpfs-jars", (), lambda _: jars.httpfs_jars(), Feature.HTTPFS, is_done=lambda: jars.are_cached("httpfs")
    ),
    Preparation("kms-jars", (), lambda _: jars.kms_jars(), Feature.KMS, is_done=lambda: jars.are_cached("kms")),
    *(row for feature in FLINKS for row in _flink(feature)),
    Preparation("kafka-format", ("kafka-jars",), kafka.format_storage, Feature.KAFKA),
    Preparation("spark-classes", (), spark_classes.archive, is_done=spark_classes.is_archived),
    Preparation("hadoop-classes", _SERVING, _archive_hadoop, is_done=lambda: class_archive.is_there("hadoop")),
    Preparation(
        "kafka-classes", _SERVING, _archive_kafka, Feature.KAFKA, is_done=lambda: class_archive.is_there("kafka")
    ),
)
