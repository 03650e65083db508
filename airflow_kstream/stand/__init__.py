"""A real kerberized Hadoop cluster (KDC, HDFS, YARN, Kafka) on loopback, in seconds."""

from airflow_kstream.stand.plan import Feature, StandPlan
from airflow_kstream.stand.stand import DaemonStatus, Stand

__all__ = ["DaemonStatus", "Feature", "Stand", "StandPlan"]
