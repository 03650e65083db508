"""The reading of answers: each moves a file on in the scheduler's queues, or ends it in the progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.policy.leases.concurrency import SLOW_CLOSE, ConcurrencyLimit
from airflow_kstream.policy.leases.file_recovery import FileRecovery, Stage, pause
from airflow_kstream.policy.leases.outcomes import (
    VANISHED,
    End,
    RecoveryProgress,
    when_interrupted,
    when_read,
    when_read_again,
    when_refused,
    when_reviewed,
    when_unreadable,
    words,
)
from airflow_kstream.policy.leases.scheduler import WALK_EVERY, RecoveryScheduler

_FIRST_POLL = timedelta(seconds=1)
# After this many given-up files of one DataNode without a closed one, the rest of its files are left alone.
_IN_A_ROW = 3
_REVIEWS_TRIED = 3
# How far the NameNode's clock may be from this process's.
_SKEW = timedelta(seconds=5)


class RecoveryObserver:
    """The one place where answers and the passing of time turn into stages, queues and outcomes.

    An answer that arrives after its file went on is ignored.
    """

    def __init__(self, progress: RecoveryProgress, scheduler: RecoveryScheduler, limits: RecoveryLimits) -> None:
        self._progress = progress
        self._scheduler = scheduler
        self._limits = limits
        self._next_walk = timedelta(0)
        self._queue_given_up = False
        self._unjudged_since: timedelta | None = None
        self._unjudged_times = 0

    def time_passed(self, now: timedelta) -> None:
        """Give up the queue of a stopped run, files past their deadline, and the places of files that are slow."""
        if self._scheduler.breaker.stopped and not self._queue_given_up:
            self._queue_given_up = True
            self._give_up_queue(self._scheduler.breaker.stopped)
        if now >= self._next_walk:
            self._next_walk = now + WALK_EVERY
            for file in self._scheduler.in_flight:
                self._is_late(now, file)

    def health_seen(self, now: timedelta, answer: HdfsHealth | KstreamError) -> None:
        """Make recoveries from before a failover due again: the new active NameNode knows nothing of them."""
        if not self._scheduler.breaker.health_seen(now, answer) or isinstance(answer, KstreamError):
            return
        since = answer.active_since - self._progress.epoch if answer.active_since else now
        for file in self._scheduler.in_flight:
            if file.request.last_requested <= since + _SKEW:
                file.retry.due = min(file.retry.due, now)

    def judged(self, due: timedelta | None) -> None:
        """Note that files were judged, and when the next ones can be; None if none is left."""
        self._scheduler.judging_due = due
        self._unjudged_since, self._unjudged_times = None, 0

    def not_judged(self, now: timedelta, error: KstreamError) -> None:
        """Try again later, as long as a file may take; without any further judgement the run stops."""
        self._unjudged_since = now if self._unjudged_since is None else self._unjudged_since
        if not error.retryable or now - self._unjudged_since >= self._limits.deadline:
            self._scheduler.breaker.stop(f"further files can't be judged: {words(error)}")
        self._scheduler.judging_due = now + pause(self._unjudged_times)
        self._unjudged_times += 1

    def state_read(self, now: timedelta, path: str, answer: FileState | KstreamError) -> None:
        file = self._progress.file(path)
        if file.stage is Stage.REQUESTED:
            self._read_again(now, file, answer)
        elif file.stage is Stage.QUEUED and isinstance(answer, FileState):
            self._read(now, file, answer)
        elif file.stage is Stage.QUEUED and isinstance(answer, KstreamError):
            self._not_read(now, file, answer)

    def requesting(self, now: timedelta, paths: Sequence[str]) -> None:
        """Mark files right before their request is sent: from now on it may have reached the NameNode."""
        for path in paths:
            file = self._progress.file(path)
            file.request.requests += 1
            file.stage = Stage.REQUESTED
            file.read_at = None
            file.request.last_requested = now
            if file.request.requested_at is None:
                file.request.requested_at = file.poll.polled = now
                file.poll.next_poll = now + _FIRST_POLL
            self._scheduler.was_requested(file)

    def requested(self, now: timedelta, path: str, answer: bool | KstreamError) -> None:
        file = self._progress.file(path)
        if file.stage is not Stage.REQUESTED:
            return
        file.retry.due = now + self._limits.pauses.before_retry(self._scheduler.breaker.version, file.request.requests)
        if isinstance(answer, KstreamError):
            self._refused(now, file, answer)
        elif answer:
            self._closed(now, file)
        else:
            file.request.accepted, file.retry.failures = True, 0

    def answered_in(self, now: timedelta, seconds: float) -> None:
        """Note how long the NameNode took per answer, in seconds, averaged over a batch."""
        self._scheduler.was_answered(now, timedelta(seconds=seconds))

    def polled(self, now: timedelta, path: str, answer: bool | KstreamError) -> None:
        file = self._progress.file(path)
        if file.stage is not Stage.REQUESTED:
            return
        if answer is True:
            self._scheduler.was_polled_closed()
            self._closed(now, file)
        elif isinstance(answer, NotFound):
            self._end(file, VANISHED)
        elif self._scheduler.breaker.stopped and not file.request.accepted:
            why = f"recovery was requested, and the answer was: {file.request.last_error}"
            self._end(file, End(Outcome.UNCONFIRMED, why))
        else:
            file.polls_later(now)

    def state_reviewed(self, now: timedelta, path: str, answer: FileState | KstreamError) -> None:
        file = self._progress.file(path)
        if file.stage not in (Stage.CLOSED, Stage.EXPIRED):
            return
        if isinstance(answer, KstreamError) and answer.retryable and file.retry.failures < _REVIEWS_TRIED:
            file.backs_off(now)
            self._scheduler.to_review(file)
        else:
            self._end_by_review(file, answer)

    def break_off(self, last_states: Iterable[tuple[str, FileState | KstreamError]]) -> None:
        """End every file now. Those in flight that `last_states` doesn't show closed are unconfirmed."""
        for path, answer in last_states:
            file = self._progress.file(path)
            closed = isinstance(answer, FileState) and not answer.is_open and not file.difference(answer)
            if file.end is None and (closed or isinstance(answer, NotFound)):
                self._end_by_review(file, answer)
        self._give_up_queue("the run was interrupted before its turn")
        for file in self._progress.files:
            self._end(file, when_interrupted(file))

    def _give_up_queue(self, why: str) -> None:
        """End every file whose recovery has not been requested yet."""
        for file in self._progress.files:
            if file.stage is Stage.QUEUED:
                self._end(file, End(Outcome.NOT_TRIED, why))

    def _is_late(self, now: timedelta, file: FileRecovery) -> None:
        lasts = now - (file.request.requested_at or now)
        if lasts >= self._limits.deadline:
            file.lands(now, Stage.EXPIRED)
            self._scheduler.to_review(file)
        elif lasts >= SLOW_CLOSE and not file.slow:
            file.slow = True
            self._scheduler.is_slow(now, file)

    def _read(self, now: timedelta, file: FileRecovery, state: FileState) -> None:
        first_read, file.read_at = file.read_at is None, now
        if end := when_read(file, state):
            self._end(file, end)
        elif first_read:
            file.before = state
            host = self._scheduler.was_read(file, state)
            self._leave_alone_where_shut([file], host)

    def _not_read(self, now: timedelta, file: FileRecovery, error: KstreamError) -> None:
        if end := when_unreadable(error):
            self._end(file, end)
            return
        file.retry.first_failed = now if file.retry.first_failed is None else file.retry.first_failed
        if not error.retryable or now - file.retry.first_failed >= self._limits.deadline:
            self._end(file, End(Outcome.NOT_TRIED, f"its state can't be read: {words(error)}"))
            return
        file.backs_off(now)
        self._scheduler.was_not_read(now, file)

    def _read_again(self, now: timedelta, file: FileRecovery, answer: FileState | KstreamError) -> None:
        if end := when_read_again(file, answer):
            self._end(file, end)
        elif isinstance(answer, KstreamError):
            file.backs_off(now)
        elif answer.is_open:
            file.read_at = now
        else:
            self._closed(now, file)

    def _refused(self, now: timedelta, file: FileRecovery, error: KstreamError) -> None:
        file.request.last_error = words(error)
        if end := when_refused(error):
            self._end(file, end)
        elif isinstance(error, Conflict) or error.retryable:
            if not file.retry.failures:
                # One that is refused again and again, such as one whose blocks lack replicas, tells of itself.
                self._scheduler.was_refused(now)
            file.backs_off(now)
        else:
            outcome = Outcome.UNCONFIRMED if file.request.requests > 1 else Outcome.NOT_TRIED
            self._end(file, End(outcome, file.request.last_error))
            if not isinstance(error, InvalidInput):
                self._scheduler.breaker.stop(file.request.last_error)

    def _closed(self, now: timedelta, file: FileRecovery) -> None:
        file.lands(now, Stage.CLOSED)
        self._scheduler.was_closed(now, file)

    def _end_by_review(self, file: FileRecovery, answer: FileState | KstreamError) -> None:
        end = when_reviewed(file, answer, self._limits.deadline)
        self._end(file, end)
        if end.outcome is Outcome.GAVE_UP and file.slot:
            host = file.slot.host
            host.given_up_in_a_row += 1
            self._leave_alone_where_shut(self._scheduler.ready_on(host), host)

    def _leave_alone_where_shut(self, files: Iterable[FileRecovery], host: ConcurrencyLimit) -> None:
        if host.given_up_in_a_row >= _IN_A_ROW:
            why = f"DataNode {host.name or '(none)'} closed none of its last {host.given_up_in_a_row} files"
            for file in files:
                self._end(file, End(Outcome.NOT_TRIED, why))

    def _end(self, file: FileRecovery, end: End) -> None:
        if file.end is None:
            self._progress.end(file, end)
            self._scheduler.has_ended(file, end.outcome)
