"""The recovery of a lease: what is asked for, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_kstream.model.open_file import Fingerprint
from airflow_kstream.model.plain import fields_of


class Outcome(StrEnum):
    """How a recovery ended. Only CLOSED, GONE and ALREADY_CLOSED leave nothing to do."""

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
    Outcome.ALREADY_CLOSED: "somebody closed it before us",
    Outcome.GONE: "the path does not exist any more",
    Outcome.CHANGED: "it changed between the verdict and the recovery: it was left alone",
    Outcome.DENIED: "the principal may not write this file",
    Outcome.LEAKED: "the NameNode has no lease for it (HDFS-10763): a restart or failover of the NameNode repairs that",
    Outcome.GAVE_UP: "it was not closed before the deadline",
    Outcome.UNCONFIRMED: "recovery was asked for and its end not seen; asking again does no harm",
    Outcome.NOT_TRIED: "nothing was asked of the NameNode",
}


@dataclass(frozen=True)
class Target:
    """A file to recover, as it was when that was decided. Whatever is different when it is due is left alone.

    `holder` is whose lease it was, where known; `reason` goes into the audit. `accepted` is whether its recovery was
    begun by asking for its holder: then that it is closed by now is our doing.
    """

    path: str
    expected: Fingerprint
    holder: str | None
    reason: str
    accepted: bool = False


@dataclass(frozen=True)
class Recovery:
    """What came of one target. Lengths in bytes; None is not known.

    `visible_before` is what a reader could see before, `length_after` the whole file's length after. `asked` counts
    the requests to recover. `valid_length` is what Flink's companion file says that must be left.
    """

    path: str
    outcome: Outcome
    why: str
    reason: str
    holder: str | None
    length_before: int | None
    visible_before: int | None
    length_after: int | None
    stamp_before: int | None
    stamp_after: int | None
    started: datetime | None
    seconds: float
    asked: int
    valid_length: int | None = None

    @property
    def bytes_lost(self) -> int | None:
        """Bytes that a reader could see before and can't now; None where either length is not known."""
        if self.visible_before is None or self.length_after is None:
            return None
        return max(0, self.visible_before - self.length_after)

    def to_json(self) -> dict[str, Any]:
        """Plain data, the loss included; times in ISO 8601 UTC."""
        return {**fields_of(self), "bytes_lost": self.bytes_lost}
