"""How a generation ended: the classes of ends, the values that describe one, and what a supervisor kept of a generation
that it stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.plain import Group


class EndKind(StrEnum):
    """The cause of an end, as far as YARN's diagnostics and the driver's own word show it.

    NEVER_RAN: a generation was claimed, and no application of it ever came. DONE: the job said that it succeeded.
    STATE: it was to begin with state for which its job has no place, so it did not begin at all.
    """

    CREDENTIALS = "credentials"
    PREEMPTED = "preempted"
    NODE_LOST = "node lost"
    KILLED = "killed"
    LIFETIME = "lifetime limit"
    MEMORY = "memory"
    AM_EXPIRED = "application master expired"
    INFRASTRUCTURE = "infrastructure"
    STATE = "unmapped state"
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
class EndClues(Group):
    """The clues to what ended a generation; each is empty if nothing names it."""

    silent: str = ""
    """The server that did not answer the job."""
    credential: str = ""
    """The credential that failed."""
    log_error: str = ""
    """The error that its driver's log ends with, if nothing else names one."""


@dataclass(frozen=True)
class PastEnd:
    """An end that nobody planned, as it was recorded. Times are the NameNode's clock's, or near it."""

    generation: int
    kind: EndKind
    fingerprint: str
    at: datetime
    """When it ended, or when a supervisor first saw it where nothing told that."""
    claimed: datetime
    """The generation's claim."""
    lasted: timedelta
    """How long its application lived, by the ResourceManager's clock."""
    worked: bool
    """Whether the generation made progress."""
    shared: bool = False
    """Whether the environment ended it: a silent server, or a cause that other streams shared."""
    killed_by: str = ""
    """The user who killed it, if that is none of our principals."""
    back_to: int = 0
    """The generation whose spec committed last and follows it, because this one ended with a changed spec before its
    first commit; 0 for any other end."""
    clues: EndClues = EndClues()

    @property
    def cause(self) -> str:
        """Return the kind in words, with the credential that failed if it is known."""
        return _cause(self.kind, self.clues.credential)

    @property
    def costs(self) -> bool:
        """Return True if it counts against the restarts that a stream has in a day."""
        return not (self.kind.blameless or self.shared)


def _cause(kind: EndKind, credential: str) -> str:
    return f"{kind}: {credential}" if credential else kind.value


@dataclass(frozen=True)
class KeptGeneration:
    """`stopped` is how it ended, in words; empty if nobody asked it to stop.

    `logs` are the ends of its logs, by their paths on HDFS; `unread` names what of all this could not be read, and why.
    """

    stopped: str = ""
    logs: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


NOTHING_KEPT = KeptGeneration()
