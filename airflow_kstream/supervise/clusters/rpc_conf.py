"""The conf folder of a connection, for what only Hadoop's RPC can do."""

from __future__ import annotations

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput


def rpc_conf(cluster: Cluster) -> HadoopConf:
    """Return the folder with the NameNodes' RPC addresses. Raises InvalidInput: when the connection names none."""
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(f"connection {cluster.name} needs a hadoop_conf_dir with the NameNodes' RPC addresses")
    return HadoopConf(cluster.hadoop_conf_dir)
