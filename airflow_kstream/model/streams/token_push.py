"""Pushes of fresh tokens to a generation that runs: what was pushed, and what its driver answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.plain import plain


def in_milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


@dataclass(frozen=True, order=True)
class TokenPush:
    """A push to a generation. `until` is when the first of its tokens ends; None if it brings none, as a test does.

    `id` is the moment at which its first token was made, or at which the test was announced, in milliseconds since 1970
    by the NameNode's clock: of two supervisors that push at once, the one with the newer token has the higher id.
    """

    generation: int
    id: int
    until: datetime | None = None

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.id / 1000, UTC)


@dataclass(frozen=True)
class Pushes:
    """The pushes to one generation, oldest first, and the ids of those that its driver applied or refused.

    `failed` are the attempts that brought nothing: no tokens could be made, or they were taken back.
    """

    pushed: tuple[TokenPush, ...] = ()
    applied: frozenset[int] = frozenset()
    refused: frozenset[int] = frozenset()
    failed: tuple[TokenPush, ...] = ()

    @property
    def answers(self) -> bool:
        """Return whether the driver has taken any push, including a test."""
        return bool(self.applied)

    @property
    def confirmed(self) -> TokenPush | None:
        """Return the newest push whose tokens the driver uses; None if it uses those of its launch."""
        return max((push for push in self.pushed if push.until and push.id in self.applied), default=None)

    @property
    def last(self) -> TokenPush | None:
        """Return the newest attempt, including a failed one."""
        return max((*self.pushed, *self.failed), default=None, key=lambda push: push.id)

    @property
    def unanswered(self) -> tuple[TokenPush, ...]:
        """Return the pushes without an answer, oldest first."""
        return tuple(push for push in self.pushed if push.id not in self.applied | self.refused)

    @property
    def vain(self) -> tuple[TokenPush, ...]:
        """Return the attempts since the last one that was applied, oldest first."""
        newest = max(self.applied, default=0)
        tried = sorted((*self.pushed, *self.failed), key=lambda push: push.id)
        return tuple(push for push in tried if push.id > newest)


@dataclass(frozen=True)
class RefreshStatus:
    """The tokens of a generation that is kept alive by pushes; durations count from the look.

    `last` and `confirmed` are how long ago the last push was, and the last one whose tokens its driver uses; None if
    there was none. `due` is the time until the next push, None where none will come. `tolerance` is for how long nobody
    may be there to push once a push is due, `restart_tolerance` the same for a planned restart instead. `trouble` is
    what is wrong, empty if nothing is.
    """

    last: timedelta | None
    confirmed: timedelta | None
    due: timedelta | None
    tolerance: timedelta | None
    restart_tolerance: timedelta | None
    trouble: str = ""

    def to_json(self) -> dict[str, object]:
        """Return plain data, durations in seconds."""
        return {
            "last_push_seconds": plain(self.last),
            "confirmed_push_seconds": plain(self.confirmed),
            "next_push_seconds": plain(self.due),
            "tolerance_seconds": plain(self.tolerance),
            "restart_tolerance_seconds": plain(self.restart_tolerance),
            "trouble": self.trouble,
        }
