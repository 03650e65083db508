"""How a generation ended: the classes of ends, and the values that describe one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EndKind(StrEnum):
    """The cause of an end, as far as it can be read from YARN and the driver."""

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
    """The end of a generation's application.

    `sign` is the text that decided the kind. `killed_by` is the short user name that YARN gives for a kill, empty if
    nobody killed it. `fingerprint` is the error without what differs between two runs (ids, addresses, numbers): equal
    fingerprints are one failure. It is empty if no error is known.
    """

    kind: EndKind
    sign: str = ""
    killed_by: str = ""
    fingerprint: str = ""
