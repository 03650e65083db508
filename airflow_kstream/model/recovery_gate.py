"""What the NameNode says of itself and its DataNodes, before and while leases are recovered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Gate:
    """The active NameNode's word. `dead` and `stale` count DataNodes; `version` is as it says, such as "3.4.3".

    `active_since` is its last change of state: every lease counts as renewed at that moment.
    """

    active: str
    safe_mode: bool
    dead: int
    stale: int
    version: str
    active_since: datetime | None = None
