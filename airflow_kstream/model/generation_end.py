"""How a generation ended: the classes of ends, and the value that describes one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EndKind(StrEnum):
    """The cause of an end, as far as YARN's diagnostics show it."""

    CREDENTIALS = "credentials"
    PREEMPTED = "preempted"
    NODE_LOST = "node lost"
    KILLED = "killed"
    LIFETIME = "lifetime limit"
    MEMORY = "memory"
    AM_EXPIRED = "application master expired"
    INFRASTRUCTURE = "infrastructure"
    CODE = "code"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class GenerationEnd:
    """The end of a generation's application. `killed_by` is YARN's short name of the user who killed it, else empty."""

    kind: EndKind
    killed_by: str = ""
