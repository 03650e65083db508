"""How a generation ended: the classes of ends, and the values that describe one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class EndKind(StrEnum):
    """The cause of an end, as far as YARN's diagnostics and the driver's own word show it.

    NEVER_RAN: a generation was claimed, and no application of it ever came.
    """

    CREDENTIALS = "credentials"
    PREEMPTED = "preempted"
    NODE_LOST = "node lost"
    KILLED = "killed"
    LIFETIME = "lifetime limit"
    MEMORY = "memory"
    AM_EXPIRED = "application master expired"
    INFRASTRUCTURE = "infrastructure"
    CODE = "code"
    NEVER_RAN = "never ran"
    UNKNOWN = "unknown"

    @property
    def blameless(self) -> bool:
        """Return True if the job had no part in it, so that it costs none of its restarts."""
        return self in {EndKind.PREEMPTED, EndKind.NODE_LOST}


@dataclass(frozen=True)
class GenerationEnd:
    """The end of a generation's application.

    `killed_by` is YARN's short name of the user who killed it, else empty. `fingerprint` is the error without what
    differs between two runs (ids, addresses, numbers): equal ones are one failure. It is empty if no error is known.
    """

    kind: EndKind
    killed_by: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class PastEnd:
    """An end that nobody planned, as it was recorded.

    `at` is when a supervisor first saw it and `claimed` is the generation's claim, both by the NameNode's clock.
    `lasted` is how long its application lived, by the ResourceManager's. `worked` is whether the generation made
    progress. `shared` is whether the environment ended it, together with other streams. `killed_by` is the user who
    killed it, if that is none of our principals.
    """

    generation: int
    kind: EndKind
    fingerprint: str
    at: datetime
    claimed: datetime
    lasted: timedelta
    worked: bool
    shared: bool = False
    killed_by: str = ""

    @property
    def costs(self) -> bool:
        """Return True if it counts against the restarts that a stream has in a day."""
        return not (self.kind.blameless or self.shared)
