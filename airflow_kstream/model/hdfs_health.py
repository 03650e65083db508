"""What the NameNode says of itself and its DataNodes, before and while leases are recovered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class HdfsHealth:
    """The active NameNode's word. `dead` and `stale` count DataNodes; `version` is as it says, such as "3.4.3".

    `active_since` is since when it serves: its last change of state, or the end of the safe mode in which it started.
    A failover renews every lease; in safe mode none can be renewed (FSNamesystem.renewLease).
    """

    active: str
    safe_mode: bool
    dead: int
    stale: int
    version: str
    active_since: datetime | None = None
