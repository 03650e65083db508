"""One file's way through a recovery, and the commands that the scheduler of a recovery gives to its executor."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.leases.lease import OUTCOME_MEANS, FileChange, Outcome, Recovery, Target
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.policy.leases.concurrency import Slot

# Between two polls of a file that does not close, and two attempts to read or request one; the last one repeats.
_PAUSES = tuple(timedelta(seconds=seconds) for seconds in (1, 1, 2, 4, 8, 15))
_MOVING = timedelta(seconds=0.5)
_TOO_FEW_BLOCKS = (
    "before Hadoop 3.5 an erasure-coded block is never closed if fewer DataNodes have bytes of it than it has data "
    "units, as when its writer died in its first stripe (HDFS-17358): then the file can only be deleted"
)
# How long a file's state counts as current: from reading it to requesting recovery.
FRESH = timedelta(seconds=2)


class Stage(Enum):
    """The stage of one file. QUEUED: not requested yet; REQUESTED: in flight; CLOSED, EXPIRED: one review is left."""

    QUEUED = auto()
    REQUESTED = auto()
    CLOSED = auto()
    EXPIRED = auto()
    ENDED = auto()


@dataclass(eq=False, slots=True)
class RequestState:
    """The requests for one file's recovery."""

    requested_at: timedelta | None = None
    """The first one."""
    last_requested: timedelta = timedelta(0)
    requests: int = 0
    accepted: bool = False
    """Whether the NameNode answered that recovery runs."""
    last_error: str = ""
    """The NameNode's."""


@dataclass(eq=False, slots=True)
class RetryState:
    """The failed requests for one file."""

    due: timedelta = timedelta(0)
    """When the next request may follow."""
    failures: int = 0
    first_failed: timedelta | None = None


@dataclass(eq=False, slots=True)
class PollState:
    """The polls whether one file is closed."""

    next_poll: timedelta = timedelta(0)
    polled: timedelta = timedelta(0)
    polls: int = 0


@dataclass(eq=False, slots=True)
class FileRecovery:
    """The progress of one target. Times are counted from the run's start; None means not yet."""

    target: Target
    stage: Stage = Stage.QUEUED
    before: FileState | None = None
    slot: Slot | None = None
    slow: bool = False
    read_at: timedelta | None = None
    """When the state was read that permits a request."""
    finished_at: timedelta | None = None
    """When the file was seen closed or was given up."""
    request: RequestState = field(default_factory=RequestState)
    retry: RetryState = field(default_factory=RetryState)
    poll: PollState = field(default_factory=PollState)
    end: Recovery | None = None

    @property
    def path(self) -> str:
        return self.target.path

    def fresh(self, now: timedelta) -> bool:
        return self.read_at is not None and now - self.read_at <= FRESH

    def backs_off(self, now: timedelta) -> None:
        self.retry.due = now + pause(self.retry.failures)
        self.retry.failures += 1

    def lands(self, now: timedelta, stage: Stage) -> None:
        """Mark a file that was seen closed, or is past its deadline: a review is due now."""
        self.stage = stage
        self.finished_at = self.retry.due = now
        self.retry.failures = 0

    def polls_later(self, now: timedelta) -> None:
        """Schedule the next poll: soon while its DataNode closes other files, since it closes them one by one."""
        last_close = self.slot.host.last_close if self.slot else None
        moving = last_close is not None and last_close >= self.poll.polled
        self.poll.polls = 0 if moving else self.poll.polls + 1
        self.poll.polled = now
        self.poll.next_poll = now + (_MOVING if moving else pause(self.poll.polls))

    def difference(self, state: FileState) -> str:
        """Describe what changed since its recovery was decided; empty if nothing did."""
        expected, actual = self.target.expected, state.fingerprint
        if actual.file_id != expected.file_id:
            return f"another file is at its path: inode {actual.file_id}, not {expected.file_id}"
        if not state.is_open or actual.same_as(expected):
            return ""
        if actual.length != expected.length or actual.visible_length != expected.visible_length:
            return f"it grew: its length is {_length(state)}, was {expected.visible_length or expected.length}"
        return f"it was reopened: its generation stamp is {actual.generation_stamp}, was {expected.generation_stamp}"

    def recovery(self, outcome: Outcome, why: str, after: FileState | None, epoch: datetime) -> Recovery:
        """Return the recovery's record. `epoch` is the time of day when the run began."""
        before, expected = self.before, self.target.expected
        return Recovery(
            path=self.path,
            outcome=outcome,
            why=why or OUTCOME_MEANS[outcome],
            reason=self.target.reason,
            holder=self.target.holder,
            change=FileChange(
                length_before=before.length if before else expected.length,
                visible_before=_visible(before, expected.visible_length),
                length_after=after.length if after else None,
                stamp_before=expected.generation_stamp,
                stamp_after=after.block.generation_stamp if after and after.block else None,
            ),
            started=epoch + self.request.requested_at if self.request.requested_at is not None else None,
            seconds=self._lasted,
            asked=self.request.requests,
        )

    @property
    def _lasted(self) -> float:
        if self.request.requested_at is None or self.finished_at is None:
            return 0.0
        return round((self.finished_at - self.request.requested_at).total_seconds(), 3)

    def why_not_closed(self, state: FileState | None, after: timedelta) -> str:
        """Explain why the file is still open, for a person who has to investigate."""
        block = state.block if state else None
        where = "its last block is unknown"
        if block:
            report = f"{block.newest_report:%Y-%m-%d %H:%M:%S} UTC" if block.newest_report else "never"
            where = f"its block {block.id} is on {', '.join(block.hosts) or 'no DataNode'}, last reported {report}"
        answer = self.request.last_error or ("recovery started" if self.request.accepted else "none")
        coded = f"; {_TOO_FEW_BLOCKS}" if state and state.erasure_coded else ""
        return f"not closed within {format_duration(after)}; {where}{coded}; the NameNode's last answer: {answer}"


def pause(number: int) -> timedelta:
    """Return the pause after so many tries."""
    return _PAUSES[min(number, len(_PAUSES) - 1)]


def _length(state: FileState) -> int:
    return state.length if state.visible_length is None else state.visible_length


def _visible(before: FileState | None, expected: int | None) -> int | None:
    if before is None:
        return expected
    if before.block is None or before.block.complete:
        return before.length
    return expected if before.visible_length is None else before.visible_length


@dataclass(frozen=True)
class CheckHealth:
    """Command to read the cluster's health."""


@dataclass(frozen=True)
class JudgeMore:
    """Command to judge at most this many further files: those that may be recovered are requested next."""

    most: int


@dataclass(frozen=True)
class ReadStates:
    """Command to read these files' states: recovery will be requested for some of them next."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class RequestRecovery:
    """Command to ask the NameNode to recover these leases now."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Poll:
    """Command to check whether these files are closed."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """Command to read the final states of these files, which are closed or past their deadline."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class WaitUntil:
    """Command to wait: nothing is due before `until`, counted from the run's start."""

    until: timedelta


Command = CheckHealth | JudgeMore | ReadStates | RequestRecovery | Poll | Review | WaitUntil
