"""TLS of a minicluster's web servers: the settings with which Hadoop finds its keys."""

from __future__ import annotations

from pathlib import Path

from airflow_kstream.minicluster.settings import Settings
from airflow_kstream.minicluster.site import Site

# Java reads no keystore without one; the file's mode is what protects the key.
PASSWORD = "changeit"


def create(site: Site) -> None:
    """Create an authority, and a certificate for localhost that all web servers share."""
    # Imports a library in Rust, which few miniclusters need.
    from airflow_kstream.minicluster.certificates import create_certificates

    create_certificates(site.folders, PASSWORD)


def identity(site: Site) -> Settings:
    """Return the settings with which servers find their key."""
    return {**_store("server.keystore", site.folders.keystore), "ssl.server.keystore.keypassword": PASSWORD}


def trust(site: Site) -> Settings:
    """Return the settings with which Hadoop's clients find the authority."""
    return _store("client.truststore", site.folders.truststore)


def _store(name: str, file: Path) -> Settings:
    return {f"ssl.{name}.location": file, f"ssl.{name}.password": PASSWORD, f"ssl.{name}.type": "pkcs12"}
