"""The identity that a stream acts as."""

from __future__ import annotations

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec, TicketCredentials


def identity_of(spec: StreamSpec, cluster: Cluster) -> Identity:
    """Return the identity that submits the stream, stops it and reads its files.

    Raises InvalidInput: when it is to use the connection's keytab or cache, and the connection has none of it.
    """
    match spec.credentials:
        case KeytabCredentials(principal):
            keytab = keytab_of(spec, cluster)
            if not keytab:
                raise InvalidInput(f"credentials: {principal} needs a keytab; the connection has none of it")
            return Identity(principal, keytab=keytab)
        case ProxyUserCredentials(user):
            watcher = cluster.watcher
            return Identity(watcher.principal, watcher.keytab, watcher.ticket_cache, do_as=user)
        case TicketCredentials(principal, keytab, cache):
            if principal is None or principal == cluster.watcher.principal:
                return Identity(
                    principal or cluster.watcher.principal,
                    keytab or (None if cache else cluster.watcher.keytab),
                    cache or (None if keytab else cluster.watcher.ticket_cache),
                )
            if keytab is None and cache is None:
                raise InvalidInput(f"credentials: {principal} needs a keytab or a cache; the connection has another's")
            return Identity(principal, keytab, cache)


def keytab_of(spec: StreamSpec, cluster: Cluster) -> str | None:
    """Return the path of the keytab that the job gets, declared or else the connection's; None if it gets none."""
    match spec.credentials:
        case KeytabCredentials(principal, keytab):
            return keytab or (cluster.watcher.keytab if principal == cluster.watcher.principal else None)
        case _:
            return None
