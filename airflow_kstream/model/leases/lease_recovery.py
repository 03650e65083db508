"""The recovery of a lease: its target and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_kstream.model.leases.open_file import Fingerprint
from airflow_kstream.model.plain import Group, fields_of


class Outcome(StrEnum):
    """The outcome of a recovery. Only CLOSED, GONE and ALREADY_CLOSED leave nothing to do."""

    CLOSED = "closed"
    ALREADY_CLOSED = "already closed"
    GONE = "gone"
    CHANGED = "changed"
    DENIED = "denied"
    LEAKED = "leaked"
    GAVE_UP = "gave up"
    UNCONFIRMED = "unconfirmed"
    NOT_TRIED = "not tried"

    @property
    def settled(self) -> bool:
        return self in {Outcome.CLOSED, Outcome.ALREADY_CLOSED, Outcome.GONE}


OUTCOME_MEANS = {
    Outcome.CLOSED: "the file is closed and can be read to its end",
    Outcome.ALREADY_CLOSED: "it was already closed",
    Outcome.GONE: "the path no longer exists",
    Outcome.CHANGED: "it changed after its recovery was decided, and was left alone",
    Outcome.DENIED: "the principal may not write this file",
    Outcome.LEAKED: "the NameNode has no lease for it (HDFS-10763): a restart or failover of the NameNode repairs that",
    Outcome.GAVE_UP: "it was not closed before the deadline",
    Outcome.UNCONFIRMED: "recovery was requested but its end was not seen; requesting it again does no harm",
    Outcome.NOT_TRIED: "no recovery was requested",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A file to recover, as it was when its recovery was decided; if it differs when its turn comes, it is left alone.

    `holder` is the lease's holder, None if unknown; `reason` goes into the journal. `accepted`: probing its holder
    started its recovery, so a file found closed afterwards was closed by us.
    """

    path: str
    expected: Fingerprint
    holder: str | None
    reason: str
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class FileChange(Group):
    """A file before and after its recovery. Lengths are in bytes; None means unknown."""

    length_before: int | None
    visible_before: int | None
    """The length that a reader could see before."""
    length_after: int | None
    """The whole file's length after."""
    stamp_before: int | None
    stamp_after: int | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of one target."""

    path: str
    outcome: Outcome
    why: str
    reason: str
    holder: str | None
    change: FileChange
    started: datetime | None
    seconds: float
    asked: int
    """How often recovery was requested."""
    valid_length: int | None = None
    """The length that Flink's companion file says must be left."""

    @property
    def bytes_lost(self) -> int | None:
        """Return the number of bytes that a reader could see before and can't now; None if either length is unknown."""
        if self.change.visible_before is None or self.change.length_after is None:
            return None
        return max(0, self.change.visible_before - self.change.length_after)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, including the loss; times in ISO 8601 UTC."""
        return {**fields_of(self), "bytes_lost": self.bytes_lost}
