"""Tables of Hadoop's settings, and the values that several of them share."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow_kstream.minicluster.site import Site

Settings = dict[str, str | int | Path]


def service(site: Site, name: str) -> str:
    return site.kdc.principal(f"{name}/localhost")


def auth_to_local(site: Site) -> str:
    """Map principals to users: containers run as the NodeManager's, but aggregated logs must belong to the job."""
    users = {"nn": "hdfs", "dn": "hdfs", "jn": "hdfs", "rm": "yarn", "nm": "yarn"}
    realm = site.plan.realm
    services = [f"RULE:[2:$1@$0]({name}@{realm})s/.*/{user}/" for name, user in users.items()]
    streamer = [f"RULE:[{parts}:$1@$0](streamer@{realm})s/.*/{site.user}/" for parts in (1, 2)]
    return "\n".join([*services, *streamer, "DEFAULT"])


def token_lifetimes(site: Site, key: str, token: str) -> Settings:
    return {
        f"{key}.update-interval": _milliseconds(min(site.plan.max_lifetime, timedelta(days=1))),
        f"{token}.renew-interval": _milliseconds(site.plan.renew_interval),
        f"{token}.max-lifetime": _milliseconds(site.plan.max_lifetime),
    }


def _milliseconds(duration: timedelta) -> int:
    return int(duration / timedelta(milliseconds=1))


def http_authentication(site: Site) -> Settings:
    """Return the settings of a web server that lets in holders of a ticket, and nobody else."""
    prefix = "hadoop.http.authentication"
    return {
        f"{prefix}.type": "kerberos",
        f"{prefix}.simple.anonymous.allowed": "false",
        f"{prefix}.kerberos.principal": service(site, "HTTP"),
        f"{prefix}.kerberos.keytab": site.folders.service_keytab,
        f"{prefix}.signature.secret.file": site.folders.http_secret,
    }
