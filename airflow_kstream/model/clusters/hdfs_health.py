"""The health of HDFS as its NameNode reports it, and times in which it was in safe mode, as refused requests told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.known_faults import HadoopVersion


@dataclass(frozen=True)
class HdfsHealth:
    """The active NameNode's report. `dead`, `stale` and `live` (stale ones among them) count DataNodes; `version` is
    Hadoop's, such as "3.4.3".

    `active_since`, by its clock: its last change of state, or the end of the safe mode in which it started; None if
    unknown. A failover renews every lease; in safe mode none can be renewed (FSNamesystem.renewLease). `all_reported`:
    since it started, every live DataNode has told it all its blocks; False also if nobody asked.
    """

    active: str
    safe_mode: bool
    dead: int
    stale: int
    version: str
    active_since: datetime | None = None
    all_reported: bool = False
    live: int = 0


@dataclass(frozen=True)
class HdfsInventory:
    """The versions of a NameNode and of its DataNodes, and the number of its erasure-coded block groups."""

    namenode: str
    version: HadoopVersion
    datanodes: tuple[HadoopVersion, ...]
    coded_blocks: int


@dataclass(frozen=True)
class SafeMode:
    """The first and the last of a supervisor's refusals in one safe mode, by this host's clock or the NameNode's.

    It began before the first one and ended after the last one, up to the time between two looks.
    """

    since: datetime
    until: datetime

    def covers(self, moment: datetime, within: timedelta) -> bool:
        """Return whether the moment lies in it, or so near to it."""
        return self.since - within <= moment <= self.until + within

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601."""
        return {"since": self.since.isoformat(), "until": self.until.isoformat()}

    @classmethod
    def from_json(cls, data: object) -> SafeMode | None:
        """Read what `to_json` wrote; None for anything else. Raises ValueError: when a time is none."""
        if not isinstance(data, Mapping):
            return None
        return cls(*(datetime.fromisoformat(str(data.get(field))) for field in ("since", "until")))
