"""From the fields of a connection to a cluster."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ConfigDict, TypeAdapter, ValidationError

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.kerberos.krb5_conf import know_realms_of
from airflow_kstream.clients.local.private import private_folder, write_private
from airflow_kstream.model.cluster import Cluster, Tls
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.field_errors import field_errors
from airflow_kstream.model.identity import Identity, split_principal


@dataclass(frozen=True)
class ConnectionFields:
    """What a `kstream` connection holds. Addresses that are not given come from `hadoop_conf_dir`.

    `keytab` is base64 of the file, `keytab_path` and `ticket_cache` are paths on every host that works with it.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principal: str
    state_dir: str
    keytab_path: str | None = None
    keytab: str | None = field(default=None, repr=False)
    ticket_cache: str | None = None
    hadoop_conf_dir: str | None = None
    resourcemanagers: str | None = None
    namenodes: str | None = None
    default_fs: str | None = None
    krb5_conf: str | None = None
    tls_ca: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        split_principal(self.principal)
        if not self.state_dir.startswith("/"):
            raise InvalidInput(f"state_dir is {self.state_dir!r}; allowed is an absolute HDFS path")
        for name in ("resourcemanagers", "namenodes"):
            for address in _addresses(getattr(self, name)):
                if not _host(address) or not address.startswith(("http://", "https://")):
                    raise InvalidInput(f"{name} has {address!r}; write http://host:port or https://host:port")
        if not (self.keytab or self.keytab_path or self.ticket_cache):
            raise InvalidInput(f"{self.principal} needs one of keytab_path, keytab or ticket_cache")

    def fingerprint(self) -> str:
        """Tells two states of a connection apart, and nothing of what is in them."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


_FIELDS: TypeAdapter[ConnectionFields] = TypeAdapter(ConnectionFields)


def connection_fields(name: str, given: Mapping[str, object]) -> ConnectionFields:
    """Check the fields of connection `name`. Raise InvalidInput that names each wrong one, never its value."""
    try:
        return _FIELDS.validate_python({key: value for key, value in given.items() if value not in (None, "")})
    except ValidationError as error:
        allowed = ", ".join(ConnectionFields.__dataclass_fields__)
        raise InvalidInput(f"connection {name}: {field_errors(error)}; its fields are {allowed}") from None


@contextmanager
def cluster_of(name: str, fields: ConnectionFields) -> Iterator[Cluster]:
    """The cluster; a keytab that the connection itself holds lies in a private folder until the end.

    From now on this process knows the cluster's realm, beside those of other clusters.
    """
    know_realms_of(fields.krb5_conf)
    with private_folder() as private:
        keytab = fields.keytab_path or (_unpacked(name, fields.keytab, private) if fields.keytab else None)
        conf = HadoopConf(fields.hadoop_conf_dir) if fields.hadoop_conf_dir else None
        yield Cluster(
            name=name,
            resourcemanagers=_addresses(fields.resourcemanagers) or _needed(name, conf).resourcemanagers(),
            namenodes=_addresses(fields.namenodes) or _needed(name, conf).namenodes(),
            default_fs=fields.default_fs or _needed(name, conf).default_fs,
            watcher=Identity(fields.principal, keytab, fields.ticket_cache),
            state_dir=fields.state_dir.rstrip("/"),
            hadoop_conf_dir=fields.hadoop_conf_dir,
            krb5_conf=fields.krb5_conf,
            tls=Tls(fields.tls_ca),
            spark_conf=fields.spark_conf,
        )


def _unpacked(name: str, keytab: str, private: Path) -> str:
    try:
        content = base64.b64decode(keytab, validate=True)
    except ValueError:
        raise InvalidInput(f"connection {name}: keytab is not base64") from None
    return str(write_private(private / "connection.keytab", content))


def _addresses(text: str | None) -> tuple[str, ...]:
    return tuple(address.strip().rstrip("/") for address in (text or "").split(",") if address.strip())


def _host(address: str) -> str | None:
    with suppress(ValueError):
        return urlsplit(address).hostname
    return None


def _needed(name: str, conf: HadoopConf | None) -> HadoopConf:
    if conf is None:
        raise InvalidInput(f"connection {name}: give hadoop_conf_dir, or resourcemanagers, namenodes and default_fs")
    return conf
