"""What Airflow keeps for a cluster: its `kstream` and `spark` connections, and secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, Variable
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, NotFound, Unavailable
from airflow_kstream.model.fields import SPARK_BINARIES
from airflow_kstream.model.secrets import SecretRef, secrets_in
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of, connection_fields
from airflow_kstream.supervise.streams.folder.secrets import LocalSecrets

if TYPE_CHECKING:
    from airflow.sdk import Connection

_WHY_CLUSTER = "the driver outlives the submitter"
_OF_SPARK = {"queue", "deploy-mode", "spark-binary"}
_INSTEAD = {
    "principal": "use the stream's credentials.principal",
    "keytab": "use the stream's credentials.keytab",
    "spark-home": "set SPARK_HOME for the worker",
    "yarn_resourcemanager_webapp_address": "use resourcemanagers of the kstream connection",
}


@contextmanager
def cluster_at(conn_id: str) -> Iterator[Cluster]:
    """Yield the cluster of a connection. Raises what `KstreamClusterHook.cluster` raises."""
    fields = fields_of(read_connection(conn_id))
    _mask_secrets({**fields.spark_conf, **fields.flink_conf})
    with cluster_of(conn_id, fields) as cluster:
        yield cluster


def _mask_secrets(conf: Mapping[str, str]) -> None:
    """Mask secrets in logs. Airflow encrypts connections, so a connection may hold them in clear; no log may."""
    for key, value in conf.items():
        for secret in secrets_in(key, value):
            mask_secret(secret)


def read_connection(conn_id: str) -> Connection:
    """Read a connection. Raises Unavailable: when Airflow returns none of this id.

    Airflow's SDK says the same of a connection that does not exist and of an API server that is away, so Airflow's own
    retries decide. A trigger, which waits for days, reads it by `triggers.shared.Sessions`.
    """
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        why = "Airflow has no such connection, or its API server is away"
        raise Unavailable(why, tried=f"read connection {conn_id}") from error


def fields_of(connection: Connection) -> ConnectionFields:
    """Read the connection's extra, and its password as the base64 keytab.

    Raises InvalidInput: when the extra holds a keytab. Airflow would show it in clear to everyone who may read
    connections.
    """
    extra = connection.extra_dejson
    if "keytab" in extra:
        raise InvalidInput(f"connection {connection.conn_id}: put the keytab into its password field, not into extra")
    return connection_fields(connection.conn_id, {**extra, "keytab": connection.password})


def spark_defaults_of(connection: Connection) -> SparkDefaults:
    """Return what the official `spark` connection contributes: the queue and the binary's name.

    Raises InvalidInput: when it has a field that would be ignored here, such as a master other than YARN.
    """
    extra: Mapping[str, Any] = connection.extra_dejson
    where = f"connection {connection.conn_id}"
    master = f"{connection.host or 'yarn'}{f':{connection.port}' if connection.port else ''}"
    if connection.conn_type != "spark" or master != "yarn":
        raise InvalidInput(f"{where} is for {connection.conn_type} with master {master}; allowed is spark with yarn")
    if extra.get("deploy-mode") not in (None, "", "cluster"):
        raise InvalidInput(f"{where} has deploy-mode {extra['deploy-mode']}; allowed is cluster: {_WHY_CLUSTER}")
    for name in sorted(name for name, value in extra.items() if value and name not in _OF_SPARK):
        raise InvalidInput(f"{where} has {name}, which would be ignored; {_INSTEAD.get(name, 'leave it out')}")
    binary = extra.get("spark-binary") or SparkDefaults().binary
    if binary not in SPARK_BINARIES:
        # A path would let everyone who may edit connections run any file of a worker.
        raise InvalidInput(f"{where} has spark-binary {binary!r}; allowed are {', '.join(SPARK_BINARIES)}, and no path")
    return SparkDefaults(source=where, binary=binary, queue=extra.get("queue") or None)


class AirflowSecrets:
    """Lookup of `conn:ID` and `var:NAME` in Airflow, and of `env:NAME` and `file:PATH` on this worker.

    The task's log masks each value that it finds: the declaration says that it is a secret, not an ordinary word.
    """

    def find(self, ref: SecretRef) -> str:
        """Return the secret. Raises NotFound: when it does not exist or is empty."""
        value = _LOOKUPS[ref.kind](ref.name) if ref.kind in _LOOKUPS else LocalSecrets().find(ref)
        if not value:
            raise NotFound(f"{ref} is not there, or empty", tried="look up a secret in Airflow")
        mask_secret(value)
        return value


def _password(conn_id: str) -> str | None:
    try:
        return BaseHook.get_connection(conn_id).password
    except AirflowNotFoundException:
        return None


def _variable(name: str) -> str | None:
    value: str | None = Variable.get(name, default=None)
    return value


_LOOKUPS = {"conn": _password, "var": _variable}
