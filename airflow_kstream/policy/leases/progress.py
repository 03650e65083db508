"""The progress of all files of a recovery, from what the executor observed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease_recovery import Outcome, Recovery, Target
from airflow_kstream.model.open_file import FileState
from airflow_kstream.policy.leases.circuit_breaker import CircuitBreaker
from airflow_kstream.policy.leases.concurrency import ConcurrencyLimit, ConcurrencyLimits
from airflow_kstream.policy.leases.file_recovery import FileRecovery, Stage
from airflow_kstream.policy.leases.judgement import LOST_LEASES
from airflow_kstream.policy.leases.limits import RecoveryLimits

_FIRST_POLL = timedelta(seconds=1)
_REVIEWS_TRIED = 3
# How far the NameNode's clock may be from this process's.
_SKEW = timedelta(seconds=5)
_VANISHED = "its path vanished after recovery was requested"


class RecoveryProgress:
    """The state of every file in a run: it takes observations and draws conclusions, but decides nothing.

    If two targets have the same path, the first one counts. `epoch` is the time of day when the run began; all other
    times are counted from there. `queue`: files to be read for the first time; `ready`: files that were read;
    `asked`: files in flight; `reviews`: files to be read for the last time.
    """

    def __init__(self, targets: Iterable[Target], limits: RecoveryLimits, epoch: datetime) -> None:
        self._all: dict[str, FileRecovery] = {}
        for target in targets:
            self._all.setdefault(target.path, FileRecovery(target))
        self._limits = limits
        self._epoch = epoch
        self._left = len(self._all)
        self._ended: list[Recovery] = []
        self.breaker = CircuitBreaker(limits.safety, limits.timeouts)
        self.concurrency = ConcurrencyLimits(limits.concurrency)
        self.queue = deque(self._all.values())
        self.ready: list[FileRecovery] = []
        self.asked: dict[str, FileRecovery] = {}
        self.reviews: deque[FileRecovery] = deque()
        self.found_closed = 0

    @property
    def done(self) -> bool:
        return self._left == 0

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Return the paths whose recovery was requested and whose outcome is not known."""
        return tuple(file.path for file in self._all.values() if file.asked and file.end is None)

    def ended(self) -> list[Recovery]:
        """Return the recoveries that ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def end_of(self, path: str) -> Recovery:
        """Return the outcome of a file that has ended."""
        end = self._all[path].end
        assert end is not None, f"{path} has not ended"
        return end

    # Observations.

    def health_seen(self, now: timedelta, answer: HdfsHealth | KstreamError) -> None:
        """Make recoveries from before a failover due again: the new active NameNode knows nothing of them."""
        if not self.breaker.health_seen(now, answer) or isinstance(answer, KstreamError):
            return
        since = answer.active_since - self._epoch if answer.active_since else now
        for file in self.asked.values():
            if file.last_asked <= since + _SKEW:
                file.due = min(file.due, now)

    def looked(self, now: timedelta, path: str, answer: FileState | KstreamError) -> None:
        file = self._all[path]
        if file.stage is Stage.ASKED:
            self._looked_again(now, file, answer)
        elif file.stage is Stage.QUEUED and isinstance(answer, FileState):
            self._found(now, file, answer)
        elif file.stage is Stage.QUEUED and isinstance(answer, KstreamError):
            self._not_found(now, file, answer)

    def asking(self, now: timedelta, paths: Sequence[str]) -> None:
        """Mark files right before their request is sent: from now on it may have reached the NameNode."""
        for path in paths:
            file = self._all[path]
            file.asked += 1
            file.stage = Stage.ASKED
            file.seen = None
            file.last_asked = now
            if file.requested_at is None:
                file.requested_at = file.polled = now
                file.next_poll = now + _FIRST_POLL
            self.asked[path] = file

    def requested(self, now: timedelta, path: str, answer: bool | KstreamError) -> None:
        file = self._all[path]
        if file.stage is not Stage.ASKED:
            return
        file.due = now + self._limits.timeouts.before_retry(self.breaker.version, file.asked)
        if isinstance(answer, KstreamError):
            self._refused(now, file, answer)
        elif answer:
            self._closed(now, file)
        else:
            file.accepted, file.failures = True, 0

    def answered_in(self, now: timedelta, seconds: float) -> None:
        """Note how long the NameNode took per answer, in seconds, averaged over a batch."""
        if timedelta(seconds=seconds) > self._limits.concurrency.slow_answer:
            self.concurrency.together.on_failure(now)

    def polled(self, now: timedelta, path: str, answer: bool | KstreamError) -> None:
        file = self._all[path]
        if file.stage is not Stage.ASKED:
            return
        if answer is True:
            self.found_closed += 1
            self._closed(now, file)
        elif isinstance(answer, NotFound):
            self._end(file, Outcome.GONE, _VANISHED)
        elif self.breaker.stopped and not file.accepted:
            self._end(file, Outcome.UNCONFIRMED, f"recovery was requested, and the answer was: {file.words}")
        else:
            file.polls_later(now, self._limits.timeouts.poll)

    def late(self, now: timedelta) -> None:
        """Mark the files in flight that have become slow, and end those that are past their deadline."""
        for file in list(self.asked.values()):
            lasts = now - (file.requested_at or now)
            if lasts >= self._limits.timeouts.deadline:
                self._land(now, file, Stage.EXPIRED)
            elif lasts >= self._limits.concurrency.slow_close and not file.slow:
                file.slow = True
                self.concurrency.is_slow(now, file.slot)

    def reviewed(self, now: timedelta, path: str, answer: FileState | KstreamError) -> None:
        file = self._all[path]
        if file.stage not in (Stage.CLOSED, Stage.EXPIRED):
            return
        if isinstance(answer, KstreamError) and answer.retryable and file.failures < _REVIEWS_TRIED:
            file.backs_off(now, self._limits.timeouts.poll)
            self.reviews.append(file)
        else:
            self._last_word(file, answer)

    def give_up_queue(self, why: str) -> None:
        """End every file whose recovery has not been requested yet."""
        for file in self._all.values():
            if file.stage is Stage.QUEUED:
                self._end(file, Outcome.NOT_TRIED, why)

    def break_off(self, last_look: Iterable[tuple[str, FileState | KstreamError]]) -> None:
        """End every file now. Of those `in_flight`, the ones that `last_look` doesn't show closed are unconfirmed."""
        for path, answer in last_look:
            file = self._all[path]
            closed = isinstance(answer, FileState) and not answer.is_open and not file.difference(answer)
            if file.end is None and (closed or isinstance(answer, NotFound)):
                self._last_word(file, answer)
        self.give_up_queue("the run was interrupted before its turn")
        for file in self._all.values():
            if file.stage is Stage.CLOSED:
                self._end(file, Outcome.CLOSED, "it is closed; its length was not read")
            elif file.end is None:
                self._end(file, Outcome.UNCONFIRMED, "the run was interrupted before its end was seen")

    # Conclusions.

    def _found(self, now: timedelta, file: FileRecovery, state: FileState) -> None:
        first_look, file.seen = file.seen is None, now
        if difference := file.difference(state):
            self._end(file, Outcome.CHANGED, difference)
        elif not state.is_open:
            self._end(file, Outcome.CLOSED if file.target.accepted else Outcome.ALREADY_CLOSED, after=state)
        elif first_look:
            file.before = state
            file.slot = self.concurrency.slot(state)
            self.ready.append(file)
            self._leave_alone_where_shut([file], file.slot.host)

    def _not_found(self, now: timedelta, file: FileRecovery, error: KstreamError) -> None:
        outcome = next((outcome for kind, outcome in _AT_FIRST_LOOK if isinstance(error, kind)), None)
        if outcome:
            self._end(file, outcome, _message(error))
            return
        file.first_failed = now if file.first_failed is None else file.first_failed
        if not error.retryable or now - file.first_failed >= self._limits.timeouts.deadline:
            self._end(file, Outcome.NOT_TRIED, f"its state can't be read: {_message(error)}")
            return
        self.concurrency.together.on_failure(now)
        file.backs_off(now, self._limits.timeouts.poll)
        if file.seen is None:
            self.queue.append(file)

    def _looked_again(self, now: timedelta, file: FileRecovery, answer: FileState | KstreamError) -> None:
        if isinstance(answer, NotFound):
            self._end(file, Outcome.GONE, _VANISHED)
        elif isinstance(answer, KstreamError):
            file.backs_off(now, self._limits.timeouts.poll)
        elif difference := file.difference(answer):
            self._end(file, Outcome.CHANGED, f"after recovery was requested, {difference}")
        elif answer.is_open:
            file.seen = now
        else:
            self._closed(now, file)

    def _refused(self, now: timedelta, file: FileRecovery, error: KstreamError) -> None:
        file.words = _message(error)
        lost = isinstance(error, Conflict) and any(words in error.message for words in LOST_LEASES)
        outcome = Outcome.LEAKED if lost else next((end for kind, end in _REFUSALS if isinstance(error, kind)), None)
        if outcome:
            self._end(file, outcome, file.words)
        elif isinstance(error, Conflict) or error.retryable:
            self.concurrency.together.on_failure(now)
            file.backs_off(now, self._limits.timeouts.poll)
        else:
            self._can_not_ask(file, error)

    def _can_not_ask(self, file: FileRecovery, error: KstreamError) -> None:
        self._end(file, Outcome.UNCONFIRMED if file.asked > 1 else Outcome.NOT_TRIED, file.words)
        if not isinstance(error, InvalidInput):
            self.breaker.stop(file.words)

    def _closed(self, now: timedelta, file: FileRecovery) -> None:
        self.concurrency.closed(now, file.slot)
        self.concurrency.give_back(file.slot)
        self._land(now, file, Stage.CLOSED)

    def _land(self, now: timedelta, file: FileRecovery, stage: Stage) -> None:
        file.stage = stage
        file.finished_at = now
        file.due, file.failures = now, 0
        self.asked.pop(file.path, None)
        self.reviews.append(file)

    def _last_word(self, file: FileRecovery, answer: FileState | KstreamError) -> None:
        was_closed, state = file.stage is Stage.CLOSED, answer if isinstance(answer, FileState) else None
        if state and state.file_id != file.target.expected.file_id:
            self._end(file, Outcome.UNCONFIRMED, f"after recovery was requested, {file.difference(state)}")
        elif state and not state.is_open:
            self._end(file, Outcome.CLOSED, after=state)
        elif was_closed:
            self._end(file, Outcome.CLOSED, _CLOSED_AND_GONE if isinstance(answer, NotFound) else _CLOSED_SINCE)
        elif isinstance(answer, NotFound):
            self._end(file, Outcome.GONE, _VANISHED)
        else:
            self._give_up(file, state)

    def _give_up(self, file: FileRecovery, state: FileState | None) -> None:
        self._end(file, Outcome.GAVE_UP, file.why_not_closed(state, self._limits.timeouts.deadline))
        if file.slot:
            host = file.slot.host
            host.given_up_in_a_row += 1
            self._leave_alone_where_shut(
                [ready for ready in self.ready if ready.slot and ready.slot.host is host], host
            )

    def _leave_alone_where_shut(self, files: Iterable[FileRecovery], host: ConcurrencyLimit) -> None:
        if host.given_up_in_a_row >= self._limits.safety.in_a_row:
            why = f"DataNode {host.name or '(none)'} closed none of its last {host.given_up_in_a_row} files"
            for file in files:
                self._end(file, Outcome.NOT_TRIED, why)

    def _end(self, file: FileRecovery, outcome: Outcome, why: str = "", after: FileState | None = None) -> None:
        if file.end is not None:
            return
        if outcome is Outcome.NOT_TRIED and file.target.accepted:
            outcome, why = Outcome.UNCONFIRMED, f"probing its holder started its recovery; {why}"
        file.end = file.recovery(outcome, why, after, self._epoch)
        file.stage = Stage.ENDED
        self._ended.append(file.end)
        self._left -= 1
        self.asked.pop(file.path, None)
        self.concurrency.give_back(file.slot)
        self.breaker.ended(outcome)


_AT_FIRST_LOOK: tuple[tuple[type[KstreamError], Outcome], ...] = (
    (NotFound, Outcome.GONE),
    (Denied, Outcome.DENIED),
    # Its path no longer holds a file.
    (InvalidInput, Outcome.CHANGED),
)
_REFUSALS: tuple[tuple[type[KstreamError], Outcome], ...] = ((NotFound, Outcome.GONE), (Denied, Outcome.DENIED))
_CLOSED_AND_GONE = "it was closed, and is no longer at this path"
_CLOSED_SINCE = "it was closed; its present state could not be read"


def _message(error: KstreamError) -> str:
    return error.message.rstrip(".")
