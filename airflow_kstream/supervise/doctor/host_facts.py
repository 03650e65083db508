"""The facts of this host: its Kerberos, its keytabs and its Spark client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from airflow_kstream.clients import spark
from airflow_kstream.clients.client_jars import hadoop_in
from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.kerberos.service_names import requested_host
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark_installations import client_defaults, installation, known_installation
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.cluster_facts import EffectiveConf, KeytabFacts, Property, ServiceName, SparkClient
from airflow_kstream.model.clusters.hadoop_version import HadoopVersion
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.finding import Concern, NotChecked
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.streams.spark_installation import SparkInstallation
from airflow_kstream.supervise.doctor.keytab_users import KeytabUser
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck
from airflow_kstream.supervise.doctor.try_ask import try_ask

_SITES = "core-, hdfs- and yarn-site.xml"
_HADOOP = "the version of its Hadoop client"


def watchers_ticket(cluster: Cluster) -> Ticket:
    """Return the ticket that the connection's principal gets now. Raises CredentialError, Unavailable: when none."""
    with private_folder() as private:
        return tickets.log_in(cluster.watcher, private / "tickets")


def service_names(cluster: Cluster) -> tuple[ServiceName, ...]:
    """Return for which hosts libkrb5 requests tickets of the servers that the connection names."""
    urls = (*cluster.resourcemanagers, *cluster.namenodes)
    hosts = sorted({urlsplit(url).hostname or "" for url in urls})
    return tuple(ServiceName(host, requested_host(host)) for host in hosts if host)


def keytab_facts(checks: Sequence[KeytabCheck], users: Sequence[KeytabUser]) -> tuple[KeytabFacts, ...]:
    """Return what checks of keytabs found, with their enctypes and the running streams that use each."""
    return tuple(_keytab_facts(check, users) for check in checks)


def _keytab_facts(check: KeytabCheck, users: Sequence[KeytabUser]) -> KeytabFacts:
    principal, path = check.place.principal, check.place.path
    return KeytabFacts(
        principal,
        path,
        check.findings,
        _enctypes(path, principal),
        tuple(user.stream for user in users if (user.principal, user.keytab) == (principal, path)),
        tuple(
            Concern(each.stream, "its driver gets no new tokens", each.loss.fails_from if each.loss else None)
            for each in check.streams
        ),
    )


def _enctypes(path: str, principal: str) -> tuple[int, ...]:
    try:
        return tuple(entry.enctype for entry in keytabs.read(path).newest(principal))
    except CredentialError:
        # The check of the file has said so.
        return ()


def spark_client(cluster: Cluster, named: str = "", *, starts: bool = True) -> SparkClient:
    """Return the Spark client of this host, as it tells when it `starts`, or as its folder shows.

    Raises InvalidInput: when this host has none.
    """
    binary = spark.find_spark_submit(named) if named else spark.find_spark_submit()
    client = installation(binary) if starts else known_installation(binary) or SparkInstallation(binary)
    where = f"no jar of {client.home} names it" if client.home else f"{binary} does not tell where its jars are"
    conf = try_ask("the conf folder of the connection", lambda: _conf_folder(cluster))
    return SparkClient(binary, client.hadoop or NotChecked(_HADOOP, where), conf, client_defaults(client))


def hadoop_of(versions: Mapping[str, str], where: str) -> HadoopVersion | NotChecked:
    """Return the version of Hadoop's client among jars, by their names."""
    return hadoop_in(versions) or NotChecked(_HADOOP, f"no jar in {where} names it")


def _conf_folder(cluster: Cluster) -> EffectiveConf:
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} has no hadoop_conf_dir")
    conf = HadoopConf(cluster.hadoop_conf_dir)
    return EffectiveConf(cluster.hadoop_conf_dir, {key: Property(conf.get(key), _SITES) for key in conf.names()})
