"""The cluster that a command talks to: a file or an Airflow connection, never a default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of, connection_fields

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
    with cluster_of(cluster_name, _fields(cluster_name)) as cluster:
        yield cluster


def is_file(cluster_name: str) -> bool:
    """Return True if --cluster names a file, and False if it names an Airflow connection."""
    return Path(cluster_name).suffix in {".yaml", ".yml"}


def spark_defaults(conn_id: str) -> SparkDefaults:
    """Return what a `spark` connection contributes. Raises InvalidInput: when it is missing or not for YARN."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowException

    from airflow_kstream.hooks.cluster import spark_defaults_of

    try:
        return spark_defaults_of(BaseHook.get_connection(conn_id))
    except AirflowException as error:
        raise InvalidInput(f"{conn_id} is not an Airflow connection: {error}", tried="find the Spark client") from error


def _fields(cluster_name: str) -> ConnectionFields:
    if is_file(cluster_name):
        return _from_file(Path(cluster_name))
    # Imported late: Airflow takes seconds, which a command with a file need not spend.
    from airflow.sdk.exceptions import AirflowException

    from airflow_kstream.hooks.cluster import KstreamClusterHook, fields_of

    try:
        return fields_of(KstreamClusterHook.get_connection(cluster_name))
    except AirflowException as error:
        raise InvalidInput(
            f"--cluster {cluster_name} is neither a .yaml file nor an Airflow connection: {error}"
        ) from error


def _from_file(path: Path) -> ConnectionFields:
    text = read_text(path)
    try:
        given = read_mapping(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}") from None
    return connection_fields(str(path), given)
