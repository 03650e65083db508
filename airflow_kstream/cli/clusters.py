"""The cluster that a command talks to: a file or an Airflow connection, never a default."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of, connection_fields

if TYPE_CHECKING:
    from airflow.sdk import Connection

# By it Airflow's own commands say that they may read its database (airflow.cli.commands.connection_command). Without it
# a program is offered variables of the environment and secrets backends alone (ensure_secrets_backend_loaded).
_AIRFLOWS_OWN = {"_AIRFLOW_PROCESS_CONTEXT": "server"}

CLUSTER_OPTION = typer.Option(
    "--cluster",
    "-c",
    envvar="KSTREAM_CLUSTER",
    help="A YAML file with the fields of a kstream connection, or the id of an Airflow connection.",
)
ClusterOption = Annotated[str, CLUSTER_OPTION]


@contextmanager
def opened(cluster_name: str) -> Iterator[Cluster]:
    """Open the cluster that --cluster names. Raises InvalidInput: when it is neither a file nor a connection."""
    with cluster_of(cluster_name, connection_of(cluster_name)) as cluster:
        yield cluster


def is_file(cluster_name: str) -> bool:
    """Return True if --cluster names a file, and False if it names an Airflow connection."""
    return Path(cluster_name).suffix in {".yaml", ".yml"}


def spark_defaults(conn_id: str) -> SparkDefaults:
    """Return what a `spark` connection contributes. Raises InvalidInput: when it is missing or not for YARN."""
    # Imported late: Airflow takes seconds, which a command without it need not spend.
    with _airflow_to_standard_error():
        from airflow_kstream.hooks.connection import spark_defaults_of

        return spark_defaults_of(_connection(conn_id, f"{conn_id} is not an Airflow connection"))


def connection_of(cluster_name: str) -> ConnectionFields:
    """Return the fields of the connection that --cluster names. Raises InvalidInput: as `opened`."""
    if is_file(cluster_name):
        return _from_file(Path(cluster_name))
    # Imported late, as above.
    with _airflow_to_standard_error():
        from airflow_kstream.hooks.connection import fields_of

        return fields_of(
            _connection(cluster_name, f"--cluster {cluster_name} is neither a .yaml file nor an Airflow connection")
        )


def _connection(conn_id: str, otherwise: str) -> Connection:
    """Return a connection, wherever Airflow keeps it. Raises InvalidInput: when Airflow has none of this id."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowException

    try:
        with _environment(_AIRFLOWS_OWN):
            return BaseHook.get_connection(conn_id)
    except AirflowException as error:
        # Airflow says the same of a database that can't be read.
        raise InvalidInput(f"{otherwise}, or Airflow's database can't be read: {error}") from error


@contextmanager
def _airflow_to_standard_error() -> Iterator[None]:
    """Let Airflow's loggers, which keep the standard output of their first import, write to standard error for good.

    Else a line of theirs would stand before a command's JSON.
    """
    with redirect_stdout(sys.stderr):
        yield
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stdout:
            handler.setStream(sys.stderr)


@contextmanager
def _environment(own: dict[str, str]) -> Iterator[None]:
    """Set these variables for a moment: what this process starts afterwards does not inherit them."""
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _from_file(path: Path) -> ConnectionFields:
    text = read_text(path)
    try:
        given = read_mapping(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}") from None
    return connection_fields(str(path), given)
