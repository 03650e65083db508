"""A round of new tokens, as a driver with a keytab logs it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class TokenRound:
    """A round at `at`, whose tokens end at `tokens_end`; without one it got none that it knows the end of.

    `delay` is how long after it the driver wants the next one. Times are the clock of the driver's host.
    """

    at: datetime
    tokens_end: datetime | None
    delay: timedelta

    @property
    def is_last(self) -> bool:
        """Return True if no further round will come: the driver waits for millions of years (SPARK-37787)."""
        return self.tokens_end is None


@dataclass(frozen=True)
class LastRound:
    """The round after which a driver makes no more tokens, and when those of the round before it end, if that shows."""

    at: datetime
    tokens_end: datetime | None = None
