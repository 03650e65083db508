"""Tables of Hadoop's settings, and the values that several of them share."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow_kstream.minicluster.site import Site

Settings = dict[str, str | int | Path]


def service(site: Site, name: str) -> str:
    return site.kdc.principal(f"{name}/localhost")


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
