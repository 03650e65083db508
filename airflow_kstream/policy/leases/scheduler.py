"""The scheduler of lease recoveries: it chooses the next command from what was done and observed so far.

Times are counted from the run's start. Each file waits its turn, is read, requested, polled until it is closed, and
read once more. A request, repeated ones included, is sent only right after a read that shows the file as it was when
its recovery was decided. Files are judged as soon as they are due and there is room, while others are recovered: then
the reading that decided is the one before the request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.policy.leases.concurrency import CircuitBreaker, ConcurrencyLimit, ConcurrencyLimits
from airflow_kstream.policy.leases.file_recovery import (
    CheckHealth,
    Command,
    FileRecovery,
    JudgeMore,
    Poll,
    ReadStates,
    RequestRecovery,
    Review,
    Stage,
    WaitUntil,
)

# The pause between two walks over all files in flight; nothing here has to be known earlier.
WALK_EVERY = timedelta(seconds=0.25)
# DataNodes close files in the order of the requests: the next ones are polled once most of the first are closed.
_POLL_AT_ONCE = 500
_POLL_AGAIN_AFTER = timedelta(seconds=0.5)


class RecoveryScheduler:
    """The queues of a run, its concurrency limits and its circuit breaker; it ends no file and executes nothing.

    `judging_due`: when further files can be judged; None if none is left. `_queue`: files to be read for the first
    time; `_ready`: files that were read; `_in_flight`: files whose recovery was requested; `_reviews`: files to be
    read for the last time.
    """

    def __init__(
        self, files: Iterable[FileRecovery], limits: RecoveryLimits, *, requests_at_once: int, reads_at_once: int
    ) -> None:
        self.breaker = CircuitBreaker(limits.pauses)
        self.judging_due: timedelta | None = None
        self._limits = ConcurrencyLimits(limits)
        self._requests_at_once = requests_at_once
        self._reads_at_once = reads_at_once
        self._queue = deque(files)
        self._ready: list[FileRecovery] = []
        self._in_flight: dict[str, FileRecovery] = {}
        self._reviews: deque[FileRecovery] = deque()
        self._polls: deque[FileRecovery] = deque()
        self._polled_at, self._polled, self._found_closed = -_POLL_AGAIN_AFTER, 0, 0
        self._next_walk = timedelta(0)

    # What became of files.

    @property
    def in_flight(self) -> tuple[FileRecovery, ...]:
        return tuple(self._in_flight.values())

    def ready_on(self, host: ConcurrencyLimit) -> list[FileRecovery]:
        """Return the files that were read and wait for this DataNode."""
        return [file for file in self._ready if file.slot and file.slot.host is host]

    def was_added(self, files: Iterable[FileRecovery]) -> None:
        """Queue files to be read for the first time."""
        self._queue.extend(files)

    def was_read(self, file: FileRecovery, state: FileState) -> ConcurrencyLimit:
        """Line the file up for its DataNode, and return the DataNode's limit."""
        file.slot = self._limits.slot(state)
        self._ready.append(file)
        return file.slot.host

    def was_not_read(self, now: timedelta, file: FileRecovery) -> None:
        self._limits.together.on_failure(now)
        if file.read_at is None:
            self._queue.append(file)

    def was_requested(self, file: FileRecovery) -> None:
        self._in_flight[file.path] = file

    def was_refused(self, now: timedelta) -> None:
        self._limits.together.on_failure(now)

    def was_answered(self, now: timedelta, latency: timedelta) -> None:
        self._limits.answered(now, latency)

    def is_slow(self, now: timedelta, file: FileRecovery) -> None:
        self._limits.is_slow(now, file.slot)

    def was_polled_closed(self) -> None:
        self._found_closed += 1

    def was_closed(self, now: timedelta, file: FileRecovery) -> None:
        self._limits.closed(now, file.slot)
        self._limits.give_back(file.slot)
        self.to_review(file)

    def to_review(self, file: FileRecovery) -> None:
        self._in_flight.pop(file.path, None)
        self._reviews.append(file)

    def has_ended(self, file: FileRecovery, outcome: Outcome) -> None:
        self._in_flight.pop(file.path, None)
        self._limits.give_back(file.slot)
        self.breaker.ended(outcome)

    # What is done next.

    def next(self, now: timedelta) -> Command:
        """Return the most urgent command. A command is repeated only if it was answered with an error."""
        if now >= self._next_walk:
            self._next_walk = now + WALK_EVERY
            self._polls = deque(file for file in self._in_flight.values() if file.poll.next_poll <= now)
        deciders: tuple[Callable[[timedelta], Command | None], ...] = (
            self._health,
            self._poll,
            self._request,
            self._read,
            self._judge,
            self._review,
        )
        return next((command for decide in deciders if (command := decide(now))), None) or WaitUntil(self._wake(now))

    def _health(self, now: timedelta) -> Command | None:
        return CheckHealth() if self.breaker.health_due(now) else None

    def _poll(self, now: timedelta) -> Command | None:
        if now < self._polled_at + _POLL_AGAIN_AFTER and 2 * self._found_closed < self._polled:
            return None
        due: list[FileRecovery] = []
        while self._polls and len(due) < _POLL_AT_ONCE:
            file = self._polls.popleft()
            if file.stage is Stage.REQUESTED:
                due.append(file)
        if not due:
            return None
        self._polled_at, self._polled, self._found_closed = now, len(due), 0
        return Poll(_paths(due))

    def _request(self, now: timedelta) -> Command | None:
        if self.breaker.holds:
            return None
        again = [file for file in self._in_flight.values() if file.retry.due <= now and file.fresh(now)]
        picked, left = again[: self._requests_at_once], []
        for file in self._ready:
            if file.slot and len(picked) < self._requests_at_once and file.fresh(now) and _may_go(file):
                file.slot.take()
                picked.append(file)
            elif file.stage is Stage.QUEUED:
                left.append(file)
        self._ready = left
        return RequestRecovery(_paths(picked)) if picked else None

    def _read(self, now: timedelta) -> Command | None:
        if self.breaker.holds:
            return None
        again = [file for file in self._in_flight.values() if file.retry.due <= now]
        again += [file for file in self._ready if file.retry.due <= now and _may_go(file)]
        again = [file for file in again if not file.fresh(now)][: self._reads_at_once]
        room = min(self._reads_at_once - max(len(again), len(self._ready)), self._limits.together.room)
        files = [*again, *self._from_queue(now, room)]
        return ReadStates(_paths(files)) if files else None

    def _judge(self, now: timedelta) -> Command | None:
        if self.breaker.holds or self._queue or self.judging_due is None or now < self.judging_due:
            return None
        room = min(self._reads_at_once - len(self._ready), self._limits.together.room)
        return JudgeMore(int(room)) if room >= 1 else None

    def _from_queue(self, now: timedelta, room: float) -> Iterator[FileRecovery]:
        while self._queue and room >= 1 and self._queue[0].retry.due <= now:
            room -= 1
            yield self._queue.popleft()

    def _review(self, now: timedelta) -> Command | None:
        due = [file for file in self._reviews if file.retry.due <= now][: self._reads_at_once]
        chosen = set(due)
        self._reviews = deque(file for file in self._reviews if file not in chosen)
        return Review(_paths(due)) if due else None

    def _wake(self, now: timedelta) -> timedelta:
        times = [file.poll.next_poll for file in self._in_flight.values()]
        times += [file.retry.due for file in self._reviews]
        if not self.breaker.holds:
            waiting = [*self._in_flight.values(), *self._ready, *list(self._queue)[:1]]
            times += [file.retry.due for file in waiting if file.retry.due > now]
            times += [] if self.judging_due is None else [self.judging_due]
        if not self.breaker.stopped:
            times.append(self.breaker.next_health)
        return max(min(times, default=now), now + WALK_EVERY)


def _may_go(file: FileRecovery) -> bool:
    return file.stage is Stage.QUEUED and file.slot is not None and file.slot.has_room


def _paths(files: Iterable[FileRecovery]) -> tuple[str, ...]:
    return tuple(file.path for file in files)
