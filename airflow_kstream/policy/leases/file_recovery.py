"""One file on its way through a recovery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.lease_recovery import OUTCOME_MEANS, Outcome, Recovery, Target
from airflow_kstream.model.open_file import FileState
from airflow_kstream.policy.leases.concurrency import Slot

_PAUSES = tuple(timedelta(seconds=seconds) for seconds in (1, 1, 2, 4, 8))
_MOVING = timedelta(seconds=0.5)
# How long a look holds good: from reading a file's state to asking for its lease.
FRESH = timedelta(seconds=2)


class Stage(Enum):
    """QUEUED was not asked for; CLOSED and EXPIRED want one more look; ASKED is in between."""

    QUEUED = auto()
    ASKED = auto()
    CLOSED = auto()
    EXPIRED = auto()
    ENDED = auto()


@dataclass(eq=False)
class FileRecovery:
    """What is known of one target.

    `seen` is the read that permits a request, `due` when the next may follow. `requested_at` is the first request,
    `finished_at` when it was seen closed or given up. `accepted` is whether the NameNode said that recovery
    runs; `words` what else it said.
    """

    target: Target
    stage: Stage = Stage.QUEUED
    before: FileState | None = None
    slot: Slot | None = None
    slow: bool = False
    seen: timedelta | None = None
    first_failed: timedelta | None = None
    requested_at: timedelta | None = None
    last_asked: timedelta = timedelta(0)
    finished_at: timedelta | None = None
    asked: int = 0
    accepted: bool = False
    words: str = ""
    due: timedelta = timedelta(0)
    failures: int = 0
    next_poll: timedelta = timedelta(0)
    polled: timedelta = timedelta(0)
    polls: int = 0
    end: Recovery | None = None

    @property
    def path(self) -> str:
        return self.target.path

    def fresh(self, now: timedelta) -> bool:
        return self.seen is not None and now - self.seen <= FRESH

    def backs_off(self, now: timedelta, most: timedelta) -> None:
        self.due = now + pause(self.failures, most)
        self.failures += 1

    def polls_later(self, now: timedelta, most: timedelta) -> None:
        """Soon, as long as its DataNode closes others; they come one after the other there."""
        last_close = self.slot.host.last_close if self.slot else None
        moving = last_close is not None and last_close >= self.polled
        self.polls = 0 if moving else self.polls + 1
        self.polled = now
        self.next_poll = now + (_MOVING if moving else pause(self.polls, most))

    def difference(self, state: FileState) -> str:
        """What is not as it was when its recovery was decided; nothing for a file that waits as it was left."""
        expected, found = self.target.expected, state.fingerprint
        if found.file_id != expected.file_id:
            return f"another file is at its path: inode {found.file_id}, and {expected.file_id} was meant"
        if not state.is_open or found.same_as(expected):
            return ""
        if found.length != expected.length or found.visible_length != expected.visible_length:
            return f"it grew: its length is {_length(state)}, and was {expected.visible_length or expected.length}"
        return (
            f"it was opened anew: its generation stamp is {found.generation_stamp}, and was {expected.generation_stamp}"
        )

    def recovery(self, outcome: Outcome, why: str, after: FileState | None, epoch: datetime) -> Recovery:
        """`epoch` is when the run began."""
        before, expected = self.before, self.target.expected
        return Recovery(
            path=self.path,
            outcome=outcome,
            why=why or OUTCOME_MEANS[outcome],
            reason=self.target.reason,
            holder=self.target.holder,
            length_before=before.length if before else expected.length,
            visible_before=_visible(before, expected.visible_length),
            length_after=after.length if after else None,
            stamp_before=expected.generation_stamp,
            stamp_after=after.block.generation_stamp if after and after.block else None,
            started=epoch + self.requested_at if self.requested_at is not None else None,
            seconds=self._lasted,
            asked=self.asked,
        )

    @property
    def _lasted(self) -> float:
        if self.requested_at is None or self.finished_at is None:
            return 0.0
        return round((self.finished_at - self.requested_at).total_seconds(), 3)

    def why_not_closed(self, state: FileState | None, after: timedelta) -> str:
        """For a person who has to find out more."""
        block = state.block if state else None
        where = "its last block is not known"
        if block:
            report = f"{block.newest_report:%Y-%m-%d %H:%M:%S} UTC" if block.newest_report else "never"
            where = f"its block {block.id} is on {', '.join(block.hosts) or 'no DataNode'}, last heard of {report}"
        said = self.words or ("recovery was begun" if self.accepted else "nothing")
        return f"not closed within {format_duration(after)}; {where}; the NameNode's last word: {said}"


def pause(number: int, most: timedelta) -> timedelta:
    return min(_PAUSES[number], most) if number < len(_PAUSES) else most


def _length(state: FileState) -> int:
    return state.length if state.visible_length is None else state.visible_length


def _visible(before: FileState | None, expected: int | None) -> int | None:
    if before is None:
        return expected
    if before.block is None or before.block.complete:
        return before.length
    return expected if before.visible_length is None else before.visible_length
