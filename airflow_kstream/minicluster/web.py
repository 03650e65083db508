"""HTTP requests to the daemons, as a principal of the minicluster."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from airflow_kstream.clients.lazy import requests_kerberos, spnego
from airflow_kstream.minicluster.site import Site

_TIMEOUT_SECONDS = 5
_environment = threading.RLock()


@contextmanager
def kerberos_of(site: Site) -> Iterator[None]:
    """Use the minicluster's realm in this process for a while: libkrb5 learns it from the environment alone."""
    ours = {"KRB5_CONFIG": str(site.folders.krb5_conf), "KRB5CCNAME": "MEMORY:kstream-minicluster"}
    with _environment:
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def connect(site: Site, port: str) -> None:
    """Connect to a daemon's port. Raises OSError: when it does not listen."""
    socket.create_connection(("127.0.0.1", site.ports[port]), 1).close()


def session_as(site: Site, name: str) -> requests.Session:
    """Return a session that answers Negotiate with the principal's keytab; use it within `kerberos_of`."""
    keytab = spnego.KerberosKeytab(keytab=str(site.kdc.keytab(name)), principal=site.kdc.principal(name))
    session = requests.Session()
    session.auth = requests_kerberos.HTTPKerberosAuth(
        mutual_authentication=requests_kerberos.OPTIONAL, principal=keytab
    )
    session.trust_env = False
    if site.scheme == "https":
        session.verify = str(site.folders.ca)
    return session


def get_json(site: Site, port: str, path: str) -> Any:
    """Get the answer for the HDFS superuser; requests' own exceptions pass through."""
    with session_as(site, "hdfs") as session:
        answer = session.get(f"{site.url(port)}{path}", timeout=_TIMEOUT_SECONDS)
    answer.raise_for_status()
    return answer.json()


def bean(site: Site, port: str, name: str) -> dict[str, Any]:
    """Return the attributes of one JMX bean. Raises LookupError: when the daemon has not registered it yet."""
    beans: list[dict[str, Any]] = get_json(site, port, f"/jmx?qry=Hadoop:{name}")["beans"]
    if not beans:
        raise LookupError(f"no bean {name} on {site.url(port)}")
    return beans[0]
