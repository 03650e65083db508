"""A connection's fields, and the cluster made from them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.kerberos.krb5_conf import know_realms_of
from airflow_kstream.clients.local.private import private_folder, write_private
from airflow_kstream.clients.local.regular_files import require_folder, require_readable
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.cluster import ClientEnvironment, ClientSettings, Cluster, Tls
from airflow_kstream.model.declared import read, written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import (
    Addresses,
    Base64,
    DefaultFs,
    LocalPath,
    Principal,
    StateDir,
    TicketCacheName,
    Word,
    addresses,
)
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.secrets import secrets_in
from airflow_kstream.model.streams.flink_conf import LiteralFlinkConf
from airflow_kstream.model.streams.spark_conf import LiteralSparkConf


@dataclass(frozen=True)
class ConnectionFields:
    """The fields of a `kstream` connection. Absent addresses come from `hadoop_conf_dir`.

    `keytab` is the file in base64; `keytab_path` and `ticket_cache` are paths on every host that uses the connection.
    `flink_homes` are folders with a Flink on each of these hosts, by the names that declarations have for them.
    `client_environment` is what its clients get beside what each gets anyway. Without `allow`, declarations may use
    whatever the workers can reach; an empty one allows what the connection has.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    principal: Principal
    state_dir: StateDir
    keytab_path: LocalPath | None = None
    keytab: Base64 | None = field(default=None, repr=False)
    ticket_cache: TicketCacheName | None = None
    hadoop_conf_dir: LocalPath | None = None
    resourcemanagers: Addresses | None = None
    namenodes: Addresses | None = None
    default_fs: DefaultFs | None = None
    krb5_conf: LocalPath | None = None
    tls_ca: LocalPath | None = None
    spark_conf: LiteralSparkConf = field(default_factory=dict, repr=False)
    flink_homes: Mapping[Word, LocalPath] = field(default_factory=dict)
    flink_conf: LiteralFlinkConf = field(default_factory=dict, repr=False)
    client_environment: ClientEnvironment = field(default_factory=dict)
    allow: Allow | None = None

    def __post_init__(self) -> None:
        if self.keytab and self.keytab_path:
            raise InvalidInput(f"{self.principal} has both keytab and keytab_path; allowed is one of them")
        if not (self.keytab or self.keytab_path or self.ticket_cache):
            raise InvalidInput(f"{self.principal} needs one of keytab_path, keytab or ticket_cache")

    def to_extra(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return plain data that a connection's extra takes, and the names of what is left out as a secret."""
        data = {name: value for name, value in written(self).items() if value not in (None, {}, [])}
        if self.allow is not None:
            data["allow"] = self.allow.to_json()
        secret = []
        for name in ("spark_conf", "flink_conf"):
            conf = data.get(name, {})
            hidden = [key for key, value in conf.items() if secrets_in(key, value)]
            secret += [f"{name} {key}" for key in hidden]
            for key in hidden:
                del conf[key]
        if data.pop("keytab", None):
            secret.append("keytab")
        return data, tuple(secret)

    def fingerprint(self) -> str:
        """Return a text that differs between two states of a connection, and reveals nothing of their content."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def connection_fields(name: str, fields: Mapping[str, object]) -> ConnectionFields:
    """Check the fields of connection `name`; an empty field of the form counts as absent.

    Raises InvalidInput: when a field is wrong; the error names each.
    """
    try:
        return read(ConnectionFields, {key: value for key, value in fields.items() if value not in (None, "")})
    except InvalidInput as error:
        raise InvalidInput(f"connection {name}: {error.message}") from None


_PRIVILEGES = "yarn.resourcemanager.proxy-user-privileges.enabled"


@contextmanager
def cluster_of(name: str, fields: ConnectionFields) -> Iterator[Cluster]:
    """Make the cluster; a keytab inside the connection is kept in a private folder until the context ends.

    From then on this process knows the cluster's realm, beside those of other clusters.
    """
    _require_files(name, fields)
    know_realms_of(fields.krb5_conf)
    with private_folder() as private:
        keytab = fields.keytab_path or (_unpacked(fields.keytab, private) if fields.keytab else None)
        conf = HadoopConf(fields.hadoop_conf_dir) if fields.hadoop_conf_dir else None
        yield Cluster(
            name=name,
            resourcemanagers=addresses(fields.resourcemanagers) or _needed(name, conf).resourcemanagers(),
            namenodes=addresses(fields.namenodes) or _needed(name, conf).namenodes(),
            default_fs=fields.default_fs or _needed(name, conf).default_fs,
            watcher=Identity(fields.principal, keytab, fields.ticket_cache),
            state_dir=fields.state_dir.rstrip("/"),
            hadoop_conf_dir=fields.hadoop_conf_dir,
            krb5_conf=fields.krb5_conf,
            tls=Tls(fields.tls_ca),
            spark_conf=fields.spark_conf,
            client=ClientSettings(
                environment=fields.client_environment,
                proxy_user_privileges=conf is not None and conf.get(_PRIVILEGES).lower() == "true",
                flink_homes=fields.flink_homes,
                flink_conf=fields.flink_conf,
            ),
            allow=fields.allow,
        )


def _require_files(name: str, fields: ConnectionFields) -> None:
    """Check the files. Raises InvalidInput: when one is missing or unreadable, which libraries don't report."""
    try:
        for path in (fields.krb5_conf, fields.tls_ca):
            if path:
                require_readable(Path(path))
        if fields.hadoop_conf_dir:
            require_folder(Path(fields.hadoop_conf_dir))
    except InvalidInput as error:
        raise InvalidInput(f"connection {name}: {error.message}") from None


def _unpacked(keytab: str, private: Path) -> str:
    return str(write_private(private / "connection.keytab", base64.b64decode(keytab)))


def _needed(name: str, conf: HadoopConf | None) -> HadoopConf:
    if conf is None:
        raise InvalidInput(f"connection {name}: give hadoop_conf_dir, or resourcemanagers, namenodes and default_fs")
    return conf
