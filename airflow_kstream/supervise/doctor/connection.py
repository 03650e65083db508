"""Does this connection work? Each step by itself, passed or failed, with the reason."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.supervise.clusters.session import Access, open_access
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes


@dataclass(frozen=True)
class Step:
    """`said` is what was found, or why it failed."""

    name: str
    passed: bool
    said: str


def check_connection(cluster: Cluster) -> Iterator[Step]:
    """All steps, in the order in which one needs the other; a failed one doesn't hide the rest."""
    with open_access(cluster, cluster.watcher) as access:
        for name, probe in _PROBES.items():
            try:
                yield Step(name, True, probe(access))
            except KstreamError as error:
                yield Step(name, False, str(error))


def _resolve(access: Access) -> str:
    urls = (*access.cluster.resourcemanagers, *access.cluster.namenodes)
    hosts = sorted({urlsplit(url).hostname or "" for url in urls})
    for host in hosts:
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            raise Unavailable(f"{host}: {error.strerror}", tried="resolve the servers' names") from error
    return ", ".join(hosts)


def _tls(access: Access) -> str:
    plain = [url for url in (*access.cluster.resourcemanagers, *access.cluster.namenodes) if url.startswith("http:")]
    if plain:
        return f"not used by {', '.join(plain)}"
    return f"verified against {access.cluster.tls.ca or 'the public authorities'}"


def _ticket(access: Access) -> str:
    with private_folder() as private:
        left = tickets.acquire(access.identity, private / "tickets")
    return f"{access.identity.principal}, good for {format_duration(left)}"


def _resourcemanager(access: Access) -> str:
    address = access.yarn.active()
    return f"{address} is active, Hadoop {access.yarn.info(address).version}"


def _applications(access: Access) -> str:
    return f"{len(access.yarn.applications('kstream'))} applications tagged kstream are visible"


def _namenode(access: Access) -> str:
    access.hdfs.status("/")
    return f"one of {', '.join(access.cluster.namenodes)} is active"


def _lifetimes(access: Access) -> str:
    found = learn_lifetimes(access.hdfs, access.identity)
    return f"renewed every {format_duration(found.renew_interval)}, at most {format_duration(found.max_lifetime)}"


def _state_dir(access: Access) -> str:
    # It must be there: made on the way, it would be the watcher's own and closed to other principals' streams.
    access.hdfs.status(access.cluster.state_dir)
    path = f"{access.cluster.state_dir}/.check-{uuid.uuid4().hex[:8]}"
    access.hdfs.write(path, "", permission="600")
    access.hdfs.delete(path)
    return f"{access.cluster.state_dir} can be written"


_PROBES: dict[str, Callable[[Access], str]] = {
    "resolve": _resolve,
    "TLS": _tls,
    "ticket": _ticket,
    "SPNEGO and active ResourceManager": _resourcemanager,
    "applications": _applications,
    "active NameNode": _namenode,
    "token lifetimes": _lifetimes,
    "state_dir": _state_dir,
}
