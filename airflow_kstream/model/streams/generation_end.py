"""How a generation ended: the classes of ends, and the values that describe one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class EndKind(StrEnum):
    """The cause of an end, as far as YARN's diagnostics and the driver's own word show it.

    NEVER_RAN: a generation was claimed, and no application of it ever came. DONE: the job said that it succeeded.
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
    DONE = "done"
    UNKNOWN = "unknown"

    @property
    def blameless(self) -> bool:
        """Return True if the job had no part in it, so that it costs none of its restarts."""
        return self in _BLAMELESS


# A tuple, because it is looked through by identity: the hash of a member is computed in Python.
_BLAMELESS = (EndKind.PREEMPTED, EndKind.NODE_LOST, EndKind.DONE)


@dataclass(frozen=True)
class GenerationEnd:
    """The end of a generation's application.

    `killed_by` is YARN's short name of the user who killed it, else empty. `fingerprint` is the error without what
    differs between two runs (ids, addresses, numbers): equal ones are one failure. It is empty if no error is known.
    `silent` is the server that did not answer the job (Kafka, HDFS or ResourceManager), as far as its error names one.
    `credential` is the one that failed: a token's kind and, if the error tells it, its service, or the Kerberos log-in.
    """

    kind: EndKind
    killed_by: str = ""
    fingerprint: str = ""
    silent: str = ""
    credential: str = ""

    @property
    def cause(self) -> str:
        """Return the kind in words, with the credential that failed if it is known."""
        return _cause(self.kind, self.credential)


@dataclass(frozen=True)
class PastEnd:
    """An end that nobody planned, as it was recorded.

    `at` is when it ended, or when a supervisor first saw it where nothing told that (as earlier versions noted it of
    all ends); `claimed` is the generation's claim. Both are by the NameNode's clock, or near it.
    `lasted` is how long its application lived, by the ResourceManager's. `worked` is whether the generation made
    progress. `shared` is whether the environment ended it: a `silent` server, or a cause that other streams shared.
    `killed_by` is the user who killed it, if that is none of our principals. `back_to` is the generation whose spec
    committed last and follows it, because this one ended with a changed spec before its first commit; 0 for any other
    end. `credential` is the one that failed, empty if the error names none or an earlier version wrote the record.
    `log_error` is the error that its driver's log ends with, if nothing else names one.
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
    back_to: int = 0
    silent: str = ""
    credential: str = ""
    log_error: str = ""

    @property
    def cause(self) -> str:
        """Return the kind in words, with the credential that failed if it is known."""
        return _cause(self.kind, self.credential)

    @property
    def costs(self) -> bool:
        """Return True if it counts against the restarts that a stream has in a day."""
        return not (self.kind.blameless or self.shared)


def _cause(kind: EndKind, credential: str) -> str:
    return f"{kind}: {credential}" if credential else kind.value
