"""What to do next to recover leases, from what was done and seen so far. Time is how long the run has lasted.

A file waits its turn, is looked at, asked for, polled until it is closed, and looked at once more. It is asked for
only right after a look that shows it as it was when its recovery was decided: also for the second time.
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

# Between two walks over all that is in flight; nothing here has to be known earlier.
_WALK_EVERY = timedelta(seconds=0.25)
# The DataNodes close in the order in which they were asked: the next are polled once most of the first are closed.
_POLL_AT_ONCE = 500
_POLL_AGAIN_AFTER = timedelta(seconds=0.5)


class RecoveryScheduler:
    """Decides the order of things for the cases. It carries nothing out."""

    def __init__(self, cases: RecoveryProgress, *, requests_at_once: int, reads_at_once: int) -> None:
        self._cases = cases
        self._requests_at_once = requests_at_once
        self._reads_at_once = reads_at_once
        self._polls: deque[FileRecovery] = deque()
        self._polled_at, self._polled = -_POLL_AGAIN_AFTER, 0
        self._next_walk = timedelta(0)
        self._queue_given_up = False

    def next(self, now: timedelta) -> Command:
        """What to do first. The same is not told twice unless it was answered with an error."""
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
        if self._cases.breaker.stopped and not self._queue_given_up:
            self._queue_given_up = True
            self._cases.give_up_queue(self._cases.breaker.stopped)
        if now >= self._next_walk:
            self._next_walk = now + _WALK_EVERY
            self._cases.late(now)
            self._polls = deque(case for case in self._cases.asked.values() if case.next_poll <= now)

    def _health(self, now: timedelta) -> Command | None:
        return CheckHealth() if self._cases.breaker.health_due(now) else None

    def _poll(self, now: timedelta) -> Command | None:
        if now < self._polled_at + _POLL_AGAIN_AFTER and 2 * self._cases.found_closed < self._polled:
            return None
        due: list[FileRecovery] = []
        while self._polls and len(due) < _POLL_AT_ONCE:
            case = self._polls.popleft()
            if case.stage is Stage.ASKED:
                due.append(case)
        if not due:
            return None
        self._polled_at, self._polled, self._cases.found_closed = now, len(due), 0
        return Poll(_paths(due))

    def _request(self, now: timedelta) -> Command | None:
        if self._cases.breaker.holds:
            return None
        picked = [case for case in self._cases.asked.values() if case.due <= now and case.fresh(now)][
            : self._requests_at_once
        ]
        left = []
        for case in self._cases.ready:
            if case.slot and len(picked) < self._requests_at_once and case.fresh(now) and self._may_go(case):
                case.slot.take()
                picked.append(case)
            elif case.stage is Stage.QUEUED:
                left.append(case)
        self._cases.ready = left
        return RequestRecovery(_paths(picked)) if picked else None

    def _look(self, now: timedelta) -> Command | None:
        if self._cases.breaker.holds:
            return None
        again = [case for case in self._cases.asked.values() if case.due <= now]
        again += [case for case in self._cases.ready if case.due <= now and self._may_go(case)]
        again = [case for case in again if not case.fresh(now)][: self._reads_at_once]
        room = min(self._reads_at_once - max(len(again), len(self._cases.ready)), self._cases.windows.together.room)
        found = [*again, *self._from_queue(now, room)]
        return ReadStates(_paths(found)) if found else None

    def _from_queue(self, now: timedelta, room: float) -> Iterator[FileRecovery]:
        queue = self._cases.queue
        while queue and room >= 1 and queue[0].due <= now:
            room -= 1
            yield queue.popleft()

    @staticmethod
    def _may_go(case: FileRecovery) -> bool:
        return case.stage is Stage.QUEUED and case.slot is not None and case.slot.has_room

    def _review(self, now: timedelta) -> Command | None:
        due = [case for case in self._cases.reviews if case.due <= now][: self._reads_at_once]
        chosen = set(due)
        self._cases.reviews = deque(case for case in self._cases.reviews if case not in chosen)
        return Review(_paths(due)) if due else None

    def _wake(self, now: timedelta) -> timedelta:
        cases = self._cases
        times = [case.next_poll for case in cases.asked.values()]
        times += [case.due for case in cases.reviews]
        if not cases.breaker.holds:
            waiting = [*cases.asked.values(), *cases.ready, *list(cases.queue)[:1]]
            times += [case.due for case in waiting if case.due > now]
        if not cases.breaker.stopped:
            times.append(cases.breaker.next_health)
        return max(min(times, default=now), now + _WALK_EVERY)


def _paths(cases: Iterable[FileRecovery]) -> tuple[str, ...]:
    return tuple(case.path for case in cases)
