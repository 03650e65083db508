"""HttpFS: WebHDFS's REST interface in front of HDFS, in a server of its own that impersonates its callers."""

from __future__ import annotations

from airflow_kstream.minicluster import java
from airflow_kstream.minicluster.jars import httpfs_jars
from airflow_kstream.minicluster.settings import Settings, http_authentication, service
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.web import get_json

_MAIN = "org.apache.hadoop.fs.http.server.HttpFSServerWebServer"


def settings(site: Site) -> Settings:
    """Return HttpFS's own settings. It takes nothing from core-site.xml but the rules for names of users."""
    backend = "httpfs.hadoop"
    return {
        "httpfs.http.hostname": "localhost",
        "httpfs.http.port": site.ports["httpfs-web"],
        "httpfs.ssl.enabled": str(site.scheme == "https").lower(),
        # It has a filter of its own; a second one would take the same ticket for a replay.
        "hadoop.http.filter.initializers": "",
        **http_authentication(site),
        f"{backend}.config.dir": site.folders.client_conf,
        f"{backend}.authentication.type": "kerberos",
        f"{backend}.authentication.kerberos.principal": service(site, "httpfs"),
        f"{backend}.authentication.kerberos.keytab": site.folders.service_keytab,
    }


def impersonation(_: Site) -> Settings:
    """Let HttpFS act for its callers."""
    return {"hadoop.proxyuser.httpfs.hosts": "*", "hadoop.proxyuser.httpfs.groups": "*"}


def command(site: Site, name: str) -> list[str]:
    """Return the command line."""
    folders = site.folders
    places = {"home": folders.data, "config": folders.daemon_conf, "log": folders.logs, "temp": folders.data}
    options = [f"-Dhttpfs.{word}.dir={place}" for word, place in places.items()]
    options += [*java.logging(site, name), "-Xmx128m", f"-Dproc_{name}"]
    return [*java.hadoop(site, folders.daemon_conf, name, *options, beside=(httpfs_jars(),)), _MAIN]


def ask(site: Site) -> str:
    """Ask for the root folder, which is the NameNode's answer."""
    status = get_json(site, "httpfs-web", "/webhdfs/v1/?op=GETFILESTATUS")["FileStatus"]
    return f"serves the HDFS of {status['owner']}"
