"""A KMS: the key server of HDFS's encryption zones, whose delegation tokens a job of such a cluster needs as well."""

from __future__ import annotations

from airflow_kstream.minicluster import java
from airflow_kstream.minicluster.jars import kms_jars
from airflow_kstream.minicluster.settings import Settings, auth_to_local, service
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.web import get_json

_MAIN = "org.apache.hadoop.crypto.key.kms.server.KMSWebServer"
_OPERATIONS = ("MANAGEMENT", "GENERATE_EEK", "DECRYPT_EEK", "READ")


def provider(site: Site) -> Settings:
    """Return what tells clients of HDFS, and its NameNodes, where the keys are."""
    return {"hadoop.security.key.provider.path": f"kms://{site.scheme}@{site.address('kms-web')}/kms"}


def settings(site: Site) -> Settings:
    """Return the KMS's own settings. Its tokens live for as long as HDFS's."""
    authentication, tokens = "hadoop.kms.authentication", "hadoop.kms.authentication.delegation-token"
    plan = site.plan
    return {
        "hadoop.kms.http.host": "localhost",
        "hadoop.kms.http.port": site.ports["kms-web"],
        "hadoop.kms.ssl.enabled": str(site.scheme == "https").lower(),
        "hadoop.kms.key.provider.uri": f"jceks://file@{site.folders.data / 'kms.keystore'}",
        # It has a filter of its own; a second one would take the same ticket for a replay.
        "hadoop.http.filter.initializers": "",
        f"{authentication}.type": "kerberos",
        f"{authentication}.kerberos.principal": service(site, "HTTP"),
        f"{authentication}.kerberos.keytab": site.folders.service_keytab,
        f"{authentication}.kerberos.name.rules": auth_to_local(site),
        f"{tokens}.renew-interval.sec": int(plan.renew_interval.total_seconds()),
        f"{tokens}.max-lifetime.sec": int(plan.max_lifetime.total_seconds()),
        "hadoop.kms.proxyuser.gateway.hosts": "*",
        "hadoop.kms.proxyuser.gateway.users": "*",
    }


def acls(_: Site) -> Settings:
    """Return who may do what with which key: everybody everything."""
    return {f"{prefix}.{word}": "*" for prefix in ("default.key.acl", "whitelist.key.acl") for word in _OPERATIONS}


def command(site: Site, name: str) -> list[str]:
    """Return the command line."""
    folders = site.folders
    options = [f"-Dkms.config.dir={folders.daemon_conf}", f"-Dkms.log.dir={folders.logs}"]
    options += [*java.logging(site, name), "-Xmx128m", f"-Dproc_{name}"]
    return [*java.hadoop(site, folders.daemon_conf, name, *options, beside=(kms_jars(),)), _MAIN]


def ask(site: Site) -> str:
    """Ask for the names of its keys."""
    return f"serves {len(get_json(site, 'kms-web', '/kms/v1/keys/names'))} keys"
