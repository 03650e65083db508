"""The health of HDFS as its NameNode reports it, before and during lease recoveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.clusters.hadoop_version import HadoopVersion


@dataclass(frozen=True)
class HdfsHealth:
    """The active NameNode's report. `dead` and `stale` count DataNodes; `version` is Hadoop's, such as "3.4.3".

    `active_since`, by its clock: its last change of state, or the end of the safe mode in which it started; None if
    unknown. A failover renews every lease; in safe mode none can be renewed (FSNamesystem.renewLease).
    """

    active: str
    safe_mode: bool
    dead: int
    stale: int
    version: str
    active_since: datetime | None = None


@dataclass(frozen=True)
class HdfsInventory:
    """The versions of a NameNode and of its DataNodes, and the number of its erasure-coded block groups."""

    namenode: str
    version: HadoopVersion
    datanodes: tuple[HadoopVersion, ...]
    coded_blocks: int
