"""Principals of the KDC, and a cluster that has a KDC and nothing else."""

from __future__ import annotations

from datetime import timedelta

from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.identity import Identity

NOWHERE = "http://127.0.0.1:1"


def login(kdc: Kdc, name: str) -> Identity:
    return Identity(kdc.principal(name), keytab=str(kdc.keytab(name)))


def brief(kdc: Kdc, name: str, life: timedelta, renewable: timedelta) -> Identity:
    """Add a principal whose tickets live for seconds."""
    kdc.add(name)
    kdc.limit_life(name, life, renewable)
    return login(kdc, name)


def cluster(watcher: Identity) -> Cluster:
    return Cluster("away", (NOWHERE,), (NOWHERE,), "hdfs://away", watcher, "/kstream")


def connection(kdc: Kdc, who: str) -> dict[str, str]:
    """Return the fields of a connection to such a cluster."""
    identity = {"principal": kdc.principal(who), "keytab_path": str(kdc.keytab(who))}
    servers = {"resourcemanagers": NOWHERE, "namenodes": NOWHERE, "default_fs": "hdfs://away"}
    return {**identity, **servers, "state_dir": "/kstream"}
