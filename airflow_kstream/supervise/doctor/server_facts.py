"""The facts that the servers of a cluster tell about themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from airflow_kstream.clients.hdfs.jmx import NameNodeJmx
from airflow_kstream.clients.server_conf import ServedConf, served_conf
from airflow_kstream.model.clusters.cluster_facts import EffectiveConf, ServerClock
from airflow_kstream.model.clusters.hdfs_health import HdfsInventory
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.doctor.try_ask import try_ask

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


def server_facts(session: ClusterSession) -> ServerFacts:
    """Ask all servers, the configurations at once. Nothing raises: each fact may be missing by itself."""
    active = try_ask("the active ResourceManager", session.yarn.active)
    inventory = try_ask("the versions in HDFS", lambda: _inventory(session), _OF_HDFS)
    node = try_ask("a NodeManager", lambda: _node_page(session))
    served = _served(session, [one for one in (active, node) if isinstance(one, str)])
    return ServerFacts(
        namenode=_namenode_conf(session, inventory, served),
        resourcemanager=_conf(active, served),
        nodemanager=_conf(node, served),
        inventory=inventory,
        lifetimes=try_ask("the lifetimes of tokens", lambda: learn_lifetimes(session.hdfs, session.identity)),
        user=try_ask("our short name", session.hdfs.user),
        clocks=tuple(_clocks(served)),
    )


def _inventory(session: ClusterSession) -> HdfsInventory:
    jmx = NameNodeJmx(session.cluster.namenodes, session.identity, session.cluster.tls)
    try:
        return jmx.inventory(jmx.health().active)
    finally:
        jmx.close()


def _node_page(session: ClusterSession) -> str:
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
