"""The life of a delegation token, as a ResourceManager or a NameNode logged it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow_kstream.model.plain import fields_of


class TokenEventKind(StrEnum):
    """ISSUED by a NameNode. SUBMITTED with an application. RENEWED, mostly by the ResourceManager. FAILED: a renewal,
    which is not tried again. REPLACED: the ResourceManager requests another one. REMOVED: nobody honours it any longer.
    """

    ISSUED = "issued"
    SUBMITTED = "submitted"
    RENEWED = "renewed"
    FAILED = "renewal failed"
    REPLACED = "replaced"
    REMOVED = "removed"


@dataclass(frozen=True)
class TokenEvent:
    """An event at a moment of the log's; of a renewal until when the token is good, and at which `share` of the time
    that was left from the last renewal on it came, None if that is not known."""

    kind: TokenEventKind
    when: datetime | None
    file: str
    line: int
    until: datetime | None = None
    share: float | None = None


@dataclass(frozen=True)
class TokenHistory:
    """A token's events in their order. `max_date` is the end that no renewal can move, None if the log doesn't tell."""

    kind: str
    service: str
    owner: str
    number: int
    applications: tuple[str, ...]
    issued: datetime | None
    max_date: datetime | None
    events: tuple[TokenEvent, ...]

    @property
    def renewals(self) -> tuple[TokenEvent, ...]:
        return tuple(event for event in self.events if event.kind is TokenEventKind.RENEWED)

    @property
    def good_until(self) -> datetime | None:
        """Return the end that the last renewal gave it."""
        return max((event.until for event in self.renewals if event.until), default=None)

    @property
    def usual_share(self) -> float | None:
        """Return the share of a renewal in the middle: 0.9 is the ResourceManager's."""
        shares = sorted(event.share for event in self.renewals if event.share is not None)
        return shares[len(shares) // 2] if shares else None

    @property
    def lasted(self) -> timedelta | None:
        """Return the time from its first event to its last one."""
        known = [event.when for event in self.events if event.when]
        return known[-1] - known[0] if known else None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        more = {"good_until": self.good_until, "usual_share": self.usual_share}
        return {**fields_of(self), **{name: value and str(value) for name, value in more.items()}}
