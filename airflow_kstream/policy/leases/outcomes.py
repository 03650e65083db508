"""The outcome that an answer means for a file, None where its recovery goes on; and the outcomes of all files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.leases.lease import Outcome, Recovery, Target
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.policy.leases.file_recovery import FileRecovery, Stage
from airflow_kstream.policy.leases.judgement import LOST_LEASES

_UNREADABLE: tuple[tuple[type[KstreamError], Outcome], ...] = (
    (NotFound, Outcome.GONE),
    (Denied, Outcome.DENIED),
    # Its path no longer holds a file.
    (InvalidInput, Outcome.CHANGED),
)
_REFUSALS: tuple[tuple[type[KstreamError], Outcome], ...] = ((NotFound, Outcome.GONE), (Denied, Outcome.DENIED))


@dataclass(frozen=True)
class End:
    """The end of one file's recovery. `after` is its state then, None if it was not read."""

    outcome: Outcome
    why: str = ""
    after: FileState | None = None


VANISHED = End(Outcome.GONE, "its path vanished after recovery was requested")
_CLOSED_AND_GONE = End(Outcome.CLOSED, "it was closed, and is no longer at this path")
_CLOSED_SINCE = End(Outcome.CLOSED, "it was closed; its present state could not be read")
_CLOSED_UNREAD = End(Outcome.CLOSED, "it is closed; its length was not read")
_INTERRUPTED = End(Outcome.UNCONFIRMED, "the run was interrupted before its end was seen")


def when_read(file: FileRecovery, state: FileState) -> End | None:
    """Return the end of a file whose recovery was not requested yet."""
    if difference := file.difference(state):
        return End(Outcome.CHANGED, difference)
    if not state.is_open:
        return End(Outcome.CLOSED if file.target.accepted else Outcome.ALREADY_CLOSED, after=state)
    return None


def when_unreadable(error: KstreamError) -> End | None:
    outcome = next((outcome for kind, outcome in _UNREADABLE if isinstance(error, kind)), None)
    return End(outcome, words(error)) if outcome else None


def when_read_again(file: FileRecovery, answer: FileState | KstreamError) -> End | None:
    """Return the end of a file that was read before its recovery is requested once more."""
    if isinstance(answer, NotFound):
        return VANISHED
    if isinstance(answer, FileState) and (difference := file.difference(answer)):
        return End(Outcome.CHANGED, f"after recovery was requested, {difference}")
    return None


def when_refused(error: KstreamError) -> End | None:
    if isinstance(error, Conflict) and any(lost in error.message for lost in LOST_LEASES):
        return End(Outcome.LEAKED, words(error))
    outcome = next((outcome for kind, outcome in _REFUSALS if isinstance(error, kind)), None)
    return End(outcome, words(error)) if outcome else None


def when_reviewed(file: FileRecovery, answer: FileState | KstreamError, deadline: timedelta) -> End:
    """Return the end of a file that is closed or past its deadline."""
    was_closed, state = file.stage is Stage.CLOSED, answer if isinstance(answer, FileState) else None
    if state and state.file_id != file.target.expected.file_id:
        return End(Outcome.UNCONFIRMED, f"after recovery was requested, {file.difference(state)}")
    if state and not state.is_open:
        return End(Outcome.CLOSED, after=state)
    if was_closed:
        return _CLOSED_AND_GONE if isinstance(answer, NotFound) else _CLOSED_SINCE
    if isinstance(answer, NotFound):
        return VANISHED
    return End(Outcome.GAVE_UP, file.why_not_closed(state, deadline))


def when_interrupted(file: FileRecovery) -> End:
    """Return the end of a file in flight of which no more will be read."""
    return _CLOSED_UNREAD if file.stage is Stage.CLOSED else _INTERRUPTED


def words(error: KstreamError) -> str:
    return error.message.rstrip(".")


class RecoveryProgress:
    """The record of which files have ended and how; it decides nothing, and knows no queue and no limit.

    If two targets have the same path, the first one counts. `epoch` is the time of day when the run began; all other
    times are counted from there.
    """

    def __init__(self, targets: Iterable[Target], epoch: datetime) -> None:
        self._files: dict[str, FileRecovery] = {}
        self._left = 0
        self._unreported: list[Recovery] = []
        self.epoch = epoch
        self.add(targets)

    def add(self, targets: Iterable[Target]) -> list[FileRecovery]:
        """Add the files of these targets, and return those that are new."""
        new: list[FileRecovery] = []
        for target in targets:
            if target.path not in self._files:
                self._files[target.path] = file = FileRecovery(target)
                new.append(file)
        self._left += len(new)
        return new

    @property
    def files(self) -> Iterable[FileRecovery]:
        return self._files.values()

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Return the paths whose recovery was requested and whose outcome is not known."""
        return tuple(file.path for file in self.files if file.request.requests and file.end is None)

    def file(self, path: str) -> FileRecovery:
        return self._files[path]

    def ended(self) -> list[Recovery]:
        """Return the recoveries that ended since the last call."""
        ended, self._unreported = self._unreported, []
        return ended

    def end_of(self, path: str) -> Recovery:
        """Return the outcome of a file that has ended."""
        end = self._files[path].end
        assert end is not None, f"{path} has not ended"
        return end

    def end(self, file: FileRecovery, end: End) -> None:
        """End a file that has not ended yet."""
        if end.outcome is Outcome.NOT_TRIED and file.target.accepted:
            end = End(Outcome.UNCONFIRMED, f"probing its holder started its recovery; {end.why}")
        file.end = file.recovery(end.outcome, end.why, end.after, self.epoch)
        file.stage = Stage.ENDED
        self._unreported.append(file.end)
        self._left -= 1
