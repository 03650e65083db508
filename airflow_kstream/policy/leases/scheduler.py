"""The scheduler of lease recoveries: it chooses the next command from what was done and seen so far.

Times are counted from the run's start. Each file waits its turn, is read, requested, polled until it is closed, and
read once more. A request, repeated ones included, is sent only right after a read that shows the file as it was when
its recovery was decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from airflow_kstream.policy.leases.commands import (
    CheckHealth,
    Command,
    Poll,
    ReadStates,
    RequestRecovery,
    Review,
    WaitUntil,
)
from airflow_kstream.policy.leases.file_recovery import FileRecovery, Stage
from airflow_kstream.policy.leases.progress import RecoveryProgress

# The pause between two walks over all files in flight; nothing here has to be known earlier.
_WALK_EVERY = timedelta(seconds=0.25)
# DataNodes close files in the order of the requests: the next ones are polled once most of the first are closed.
_POLL_AT_ONCE = 500
_POLL_AGAIN_AFTER = timedelta(seconds=0.5)


class RecoveryScheduler:
    """The chooser of the next command for a run; it executes nothing."""

    def __init__(self, progress: RecoveryProgress, *, requests_at_once: int, reads_at_once: int) -> None:
        self._progress = progress
        self._requests_at_once = requests_at_once
        self._reads_at_once = reads_at_once
        self._polls: deque[FileRecovery] = deque()
        self._polled_at, self._polled = -_POLL_AGAIN_AFTER, 0
        self._next_walk = timedelta(0)
        self._queue_given_up = False

    def next(self, now: timedelta) -> Command:
        """Return the most urgent command. A command is repeated only if it was answered with an error."""
        self._walk(now)
        deciders: tuple[Callable[[timedelta], Command | None], ...] = (
            self._health,
            self._poll,
            self._request,
            self._look,
            self._review,
        )
        return next((command for decide in deciders if (command := decide(now))), None) or WaitUntil(self._wake(now))

    def _walk(self, now: timedelta) -> None:
        if self._progress.breaker.stopped and not self._queue_given_up:
            self._queue_given_up = True
            self._progress.give_up_queue(self._progress.breaker.stopped)
        if now >= self._next_walk:
            self._next_walk = now + _WALK_EVERY
            self._progress.late(now)
            self._polls = deque(file for file in self._progress.asked.values() if file.next_poll <= now)

    def _health(self, now: timedelta) -> Command | None:
        return CheckHealth() if self._progress.breaker.health_due(now) else None

    def _poll(self, now: timedelta) -> Command | None:
        if now < self._polled_at + _POLL_AGAIN_AFTER and 2 * self._progress.found_closed < self._polled:
            return None
        due: list[FileRecovery] = []
        while self._polls and len(due) < _POLL_AT_ONCE:
            file = self._polls.popleft()
            if file.stage is Stage.ASKED:
                due.append(file)
        if not due:
            return None
        self._polled_at, self._polled, self._progress.found_closed = now, len(due), 0
        return Poll(_paths(due))

    def _request(self, now: timedelta) -> Command | None:
        if self._progress.breaker.holds:
            return None
        picked = [file for file in self._progress.asked.values() if file.due <= now and file.fresh(now)][
            : self._requests_at_once
        ]
        left = []
        for file in self._progress.ready:
            if file.slot and len(picked) < self._requests_at_once and file.fresh(now) and self._may_go(file):
                file.slot.take()
                picked.append(file)
            elif file.stage is Stage.QUEUED:
                left.append(file)
        self._progress.ready = left
        return RequestRecovery(_paths(picked)) if picked else None

    def _look(self, now: timedelta) -> Command | None:
        if self._progress.breaker.holds:
            return None
        again = [file for file in self._progress.asked.values() if file.due <= now]
        again += [file for file in self._progress.ready if file.due <= now and self._may_go(file)]
        again = [file for file in again if not file.fresh(now)][: self._reads_at_once]
        room = min(
            self._reads_at_once - max(len(again), len(self._progress.ready)), self._progress.concurrency.together.room
        )
        found = [*again, *self._from_queue(now, room)]
        return ReadStates(_paths(found)) if found else None

    def _from_queue(self, now: timedelta, room: float) -> Iterator[FileRecovery]:
        queue = self._progress.queue
        while queue and room >= 1 and queue[0].due <= now:
            room -= 1
            yield queue.popleft()

    @staticmethod
    def _may_go(file: FileRecovery) -> bool:
        return file.stage is Stage.QUEUED and file.slot is not None and file.slot.has_room

    def _review(self, now: timedelta) -> Command | None:
        due = [file for file in self._progress.reviews if file.due <= now][: self._reads_at_once]
        chosen = set(due)
        self._progress.reviews = deque(file for file in self._progress.reviews if file not in chosen)
        return Review(_paths(due)) if due else None

    def _wake(self, now: timedelta) -> timedelta:
        progress = self._progress
        times = [file.next_poll for file in progress.asked.values()]
        times += [file.due for file in progress.reviews]
        if not progress.breaker.holds:
            waiting = [*progress.asked.values(), *progress.ready, *list(progress.queue)[:1]]
            times += [file.due for file in waiting if file.due > now]
        if not progress.breaker.stopped:
            times.append(progress.breaker.next_health)
        return max(min(times, default=now), now + _WALK_EVERY)


def _paths(files: Iterable[FileRecovery]) -> tuple[str, ...]:
    return tuple(file.path for file in files)
