"""The hook of a kerberized cluster, and the check of its `kstream` connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import BaseHook

from airflow_kstream.hooks.connection import cluster_at
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.doctor.connection import ProbeOutcome, ProbeResult, check_connection

_OUTCOMES = {ProbeOutcome.PASSED: "ok", ProbeOutcome.WARNING: "WARNING", ProbeOutcome.FAILED: "FAILED"}


class KstreamClusterHook(BaseHook):
    """A hook that reads a `kstream` connection. It sends nothing to the cluster until its result is used.

    There is no default connection: code that can kill or delete must name its cluster.

    Example::

        with KstreamClusterHook("prod").cluster() as cluster, open_session(cluster, cluster.watcher) as session:
            verdicts = Watch(session).round(["orders"])

    :param cluster_conn_id: the `kstream` connection.
    """

    conn_name_attr = "cluster_conn_id"
    conn_type = "kstream"
    hook_name = "Kerberized Hadoop cluster (kstream)"

    def __init__(self, cluster_conn_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        """Yield the cluster. A keytab in the connection is a file in a private folder until the block ends.

        Raises InvalidInput: when a field of the connection is wrong. Raises Unavailable: when Airflow returns none.
        """
        with cluster_at(self.cluster_conn_id) as cluster:
            yield cluster

    def test_connection(self) -> tuple[bool, str]:
        """Return the result of `kstream connection check`: whether all probes passed, and all of them in one line."""
        try:
            with self.cluster() as cluster:
                results = list(check_connection(cluster))
        except KstreamError as error:
            return False, str(error)
        return all(result.passed for result in results), "; ".join(map(_in_one_line, results))


def _in_one_line(result: ProbeResult) -> str:
    ways_out = f" (run {' && '.join(result.commands)})" if result.commands else ""
    return f"{result.name}: {_OUTCOMES[result.outcome]}, {result.detail}{ways_out}"
