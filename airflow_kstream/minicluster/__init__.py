"""A real kerberized Hadoop cluster (KDC, HDFS, YARN, Kafka) on loopback, in seconds."""

from airflow_kstream.minicluster.config import Feature, MiniclusterConfig
from airflow_kstream.minicluster.minicluster import Minicluster
from airflow_kstream.minicluster.status import DaemonStatus

__all__ = ["DaemonStatus", "Feature", "Minicluster", "MiniclusterConfig"]
