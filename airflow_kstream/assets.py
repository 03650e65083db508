"""Streams and clusters as Airflow's assets: `kstream://<connection id>/<stream>`, and `kstream://<connection id>/`."""

from __future__ import annotations

from functools import cache
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.sdk import Asset

from airflow_kstream.model.fields import is_stream_name

SCHEME = "kstream"
# What else than letters, digits and `-._~` an address can hold as it is.
_PLAIN = "!():"


def asset_uri(cluster_conn_id: str, stream: str = "") -> str:
    """Return the address of a stream, or of the cluster. Connections' ids may have `#` and `/`, which end a host."""
    return f"{SCHEME}://{quote(cluster_conn_id, safe=_PLAIN)}/{stream}"


def subject_of(uri: str) -> tuple[str, str]:
    """Return the connection's id and the stream, "" for the cluster, of an address that `asset_uri` made."""
    parts = urlsplit(uri)
    return unquote(parts.netloc), parts.path.removeprefix("/")


def stream_asset(cluster_conn_id: str, stream: str) -> Asset:
    """Return the stream's asset, as a DAG's `schedule` or an outlet names it."""
    return Asset(asset_uri(cluster_conn_id, stream))


@cache
def cluster_asset(cluster_conn_id: str) -> Asset:
    """Return the cluster's asset."""
    return Asset(asset_uri(cluster_conn_id))


def cluster_inlets(cluster_conn_id: str) -> list[Asset]:
    """Return what a task names to keep what was told of its cluster, for as long as its DAG names it.

    Nothing where only the rendered task knows the cluster. A mapped task's DAG does not know what `__init__` adds.
    """
    return [] if "{{" in cluster_conn_id else [cluster_asset(cluster_conn_id)]


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Return an address in the one way to write it, so that two DAGs that name a stream mean one asset.

    Airflow calls it where an Asset is made. Raises ValueError: when it names no connection, or no possible stream.
    """
    stream = uri.path.strip("/")
    if not uri.netloc or uri.query or (stream and not is_stream_name(stream)):
        raise ValueError(f"{uri.geturl()!r} is not a stream; write kstream://<connection id>/<stream>")
    return uri._replace(path=f"/{stream}")
