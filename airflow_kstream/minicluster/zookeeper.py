"""ZooKeeper: a single server in which ResourceManagers elect the active one and keep their applications.

It is without Kerberos, and listens on loopback only.
"""

from __future__ import annotations

import socket

from airflow_kstream.minicluster import java
from airflow_kstream.minicluster.site import Site

_TIMEOUT_SECONDS = 5


def write_configuration(site: Site) -> None:
    """Write the server's zoo.cfg."""
    settings = {
        "clientPort": site.ports["zookeeper"],
        "clientPortAddress": "127.0.0.1",
        "dataDir": site.folders.data / "zookeeper",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
        "maxClientCnxns": 0,
    }
    lines = [f"{key}={value}" for key, value in settings.items()]
    (site.folders.daemon_conf / "zoo.cfg").write_text("\n".join([*lines, ""]))


def command(site: Site, name: str) -> list[str]:
    """Return the command line. Its log is not forced to the disk: it survives a SIGKILL, and no power failure."""
    options = [*java.logging(site, name), "-Xmx64m", f"-Dproc_{name}", "-Dzookeeper.forceSync=no"]
    # It would fill 64 MB with zeros at its start.
    options += ["-Dzookeeper.preAllocSize=1024"]
    conf = site.folders.daemon_conf
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    return [*java.hadoop(site, conf, name, *options), main, str(conf / "zoo.cfg")]


def ask(site: Site) -> str:
    """Ask the server for its mode and how many nodes it keeps."""
    with socket.create_connection(("127.0.0.1", site.ports["zookeeper"]), _TIMEOUT_SECONDS) as connection:
        connection.sendall(b"srvr")
        with connection.makefile("r") as stream:
            answer = dict(line.split(": ", 1) for line in stream if ": " in line)
    return f"{answer['Mode'].strip()}, {answer['Node count'].strip()} nodes"
