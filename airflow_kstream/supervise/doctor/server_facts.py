"""What the servers of a cluster tell about themselves, and what this host has: tickets, keytabs, a Spark client."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_kstream.clients import spark
from airflow_kstream.clients.client_process import added_variables
from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.jmx import NameNodeJmx
from airflow_kstream.clients.http import requested_host
from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.server_conf import ServedConf, open_namenode, open_nodemanager, served_conf
from airflow_kstream.clients.spark_installations import (
    client_defaults,
    hadoop_in,
    installation,
    known_installation,
    script_variables,
)
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.cluster_facts import (
    EffectiveConf,
    KeytabFacts,
    OpenWeb,
    OpenWebs,
    Property,
    ServerClock,
    ServiceName,
    SparkClient,
    StopWay,
    known,
)
from airflow_kstream.model.clusters.hdfs_health import HdfsInventory
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.finding import Concern, NotChecked
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.doctor.try_ask import try_ask

if TYPE_CHECKING:
    from airflow_kstream.supervise.doctor.keytabs import KeytabCheck, KeytabUser


_SITES = "core-, hdfs- and yarn-site.xml"
_HADOOP = "the version of its Hadoop client"

_ADMIN = "a place in {acl} of that server, where hadoop.security.instrumentation.requires.admin is true"
_OF_HDFS, _OF_YARN = _ADMIN.format(acl="dfs.cluster.administrators"), _ADMIN.format(acl="yarn.admin.acl")
_THREADS = 6


@dataclass(frozen=True)
class ServerFacts:
    """The configurations and versions of the active servers, and the clocks of all."""

    namenode: EffectiveConf | NotChecked
    resourcemanager: EffectiveConf | NotChecked
    nodemanager: EffectiveConf | NotChecked
    inventory: HdfsInventory | NotChecked
    lifetimes: TokenLifetimes | NotChecked
    user: str | NotChecked
    clocks: tuple[ServerClock, ...]
    stops: StopWay | NotChecked
    open_webs: OpenWebs


def server_facts(session: ClusterSession) -> ServerFacts:
    """Ask all servers, the configurations at once. Nothing raises: each fact may be missing by itself."""
    active = try_ask("the active ResourceManager", session.yarn.active)
    inventory = try_ask("the versions in HDFS", lambda: _inventory(session), _OF_HDFS)
    node = try_ask("a NodeManager", lambda: node_page(session))
    served = _served(session, [one for one in (active, node) if isinstance(one, str)])
    return ServerFacts(
        namenode=_namenode_conf(session, inventory, served),
        resourcemanager=_conf(active, served),
        nodemanager=_conf(node, served),
        inventory=inventory,
        lifetimes=try_ask("the lifetimes of tokens", lambda: learn_lifetimes(session.hdfs, session.identity)),
        user=try_ask("our short name", session.hdfs.user),
        clocks=tuple(_clocks(served)),
        stops=try_ask("a way to stop applications", lambda: _stop_way(session)),
        open_webs=OpenWebs(
            try_ask("whether WebHDFS wants a proof of who asks", lambda: open_namenodes(session)),
            try_ask("whether a NodeManager wants a proof of who asks", lambda: open_node(session, known(node))),
        ),
    )


def open_namenodes(session: ClusterSession) -> tuple[OpenWeb, ...]:
    """Return the NameNodes that answer, and take WebHDFS requests without a proof of who asks.

    Raises Unavailable: when one does not answer, unless another is open.
    """
    cluster, found, silent = session.cluster, [], None
    for address in cluster.namenodes:
        try:
            found.append(open_namenode(address, session.identity, cluster.tls))
        except Unavailable as error:
            silent = error
    opened = tuple(one for one in found if one)
    if silent and not opened:
        raise silent
    return opened


def open_node(session: ClusterSession, page: str) -> OpenWeb | None:
    """Return the NodeManager of this page if it wants no proof of who asks, else None.

    Raises Unavailable: when it does not answer.
    """
    return open_nodemanager(page, session.identity, session.cluster.tls)


def _stop_way(session: ClusterSession) -> StopWay:
    try:
        return StopWay(session.yarn.way_to_stop())
    except Denied as error:
        return StopWay(error.without_advice, works=False)


def _inventory(session: ClusterSession) -> HdfsInventory:
    jmx = NameNodeJmx(session.cluster.namenodes, session.identity, session.cluster.tls)
    try:
        return jmx.inventory(jmx.health().active)
    finally:
        jmx.close()


def node_page(session: ClusterSession) -> str:
    """Return the web address of a NodeManager. Raises NotFound: when none runs."""
    node = session.yarn.any_node()
    if node is None:
        raise NotFound("no node runs", tried="list the nodes", server=session.yarn.active())
    scheme = session.yarn.active().partition("://")[0]
    return f"{scheme}://{node.web}"


def _served(session: ClusterSession, also: Sequence[str]) -> Mapping[str, ServedConf | NotChecked]:
    cluster = session.cluster
    rights = {**dict.fromkeys(cluster.namenodes, _OF_HDFS), **dict.fromkeys(cluster.resourcemanagers, _OF_YARN)}
    rights = {address.rstrip("/"): right for address, right in {**dict.fromkeys(also, _OF_YARN), **rights}.items()}

    def read(address: str) -> ServedConf | NotChecked:
        return try_ask(
            f"the configuration of {address}",
            lambda: served_conf(address, session.identity, cluster.tls),
            rights[address],
        )

    with ThreadPoolExecutor(_THREADS) as threads:
        return dict(zip(rights, threads.map(read, rights), strict=True))


def _conf(address: str | NotChecked, served: Mapping[str, ServedConf | NotChecked]) -> EffectiveConf | NotChecked:
    if isinstance(address, NotChecked):
        return address
    page = served[address.rstrip("/")]
    return page if isinstance(page, NotChecked) else page.conf


def _namenode_conf(
    session: ClusterSession, inventory: HdfsInventory | NotChecked, served: Mapping[str, ServedConf | NotChecked]
) -> EffectiveConf | NotChecked:
    """Return the configuration of the active NameNode; where none says that it is active, of the first that answers."""
    if isinstance(inventory, HdfsInventory):
        return _conf(inventory.namenode, served)
    confs = [_conf(address, served) for address in session.cluster.namenodes]
    return next((conf for conf in confs if isinstance(conf, EffectiveConf)), confs[0])


def _clocks(served: Mapping[str, ServedConf | NotChecked]) -> Iterator[ServerClock]:
    for address, page in served.items():
        if isinstance(page, ServedConf) and page.ahead is not None:
            yield ServerClock(address, page.ahead)


def refusal(session: ClusterSession) -> str:
    """Return the refusal of HDFS or YARN to take requests of this session's identity; empty if both take them.

    Raises Unavailable, CredentialError: when they can't be asked, which is not a refusal.
    """
    try:
        session.hdfs.status("/")
        session.yarn.user()
    except Denied as error:
        return error.without_advice
    return ""


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
    added = added_variables(cluster)
    client = installation(binary, added) if starts else known_installation(binary, added) or SparkInstallation(binary)
    where = f"no jar of {client.home} names it" if client.home else f"{binary} does not tell where its jars are"
    conf = try_ask("the conf folder of the connection", lambda: _conf_folder(cluster))
    missing = try_ask("the client's script", lambda: _missing(cluster, binary))
    return SparkClient(binary, client.hadoop or NotChecked(_HADOOP, where), conf, client_defaults(client), missing)


def _missing(cluster: Cluster, binary: str) -> dict[str, bool]:
    """Return the variables that the client's script reads and does not get, each with whether this host has it."""
    names = script_variables(binary) - spark.names_for(cluster, binary)
    return {name: name in os.environ for name in sorted(names)}


def hadoop_of(versions: Mapping[str, str], where: str) -> HadoopVersion | NotChecked:
    """Return the version of Hadoop's client among jars, by their names."""
    return hadoop_in(versions) or NotChecked(_HADOOP, f"no jar in {where} names it")


def _conf_folder(cluster: Cluster) -> EffectiveConf:
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} has no hadoop_conf_dir")
    conf = HadoopConf(cluster.hadoop_conf_dir)
    return EffectiveConf(cluster.hadoop_conf_dir, {key: Property(conf.get(key), _SITES) for key in conf.names()})
