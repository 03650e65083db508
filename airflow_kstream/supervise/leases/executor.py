"""Carry a recovery out: do what the plan says next, tell it what came of that, and record everything."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol, TypeVar

from airflow_kstream.clients.hdfs.lease_recovery_native import LeaseRecoverer
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.hdfs_health import HdfsHealth
from airflow_kstream.model.lease_recovery import Outcome, Recovery, Target
from airflow_kstream.model.open_file import FileState
from airflow_kstream.policy.leases.commands import (
    CheckHealth,
    Command,
    Poll,
    ReadStates,
    RequestRecovery,
    Review,
    WaitUntil,
)
from airflow_kstream.policy.leases.limits import RecoveryLimits
from airflow_kstream.policy.leases.progress import RecoveryProgress
from airflow_kstream.policy.leases.scheduler import RecoveryScheduler
from airflow_kstream.supervise.leases.journal import Journal

Said = TypeVar("Said")
# A killed run can leave at most so many intents without a result that were never asked for.
_INTENTS_AT_ONCE = 1000
_FLUSH_EVERY = timedelta(seconds=10)


class FileStates(Protocol):
    """Who can be asked about many files at once; an error is the answer for its file, or raised for all."""

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]: ...

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]: ...


class Clock:
    """The time of day, the time that passed, and how it is waited for."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def passed(self) -> timedelta:
        return timedelta(seconds=time.monotonic())

    def wait(self, stop: threading.Event, duration: timedelta) -> None:
        stop.wait(duration.total_seconds())


@dataclass(frozen=True)
class Tools:
    """What a recovery works with. `valid_length` is asked for each file that was closed: make it cheap.

    `reads_at_once`: of how many files `states` is asked at most, where each of them takes long.
    """

    states: FileStates
    recoverer: LeaseRecoverer
    health: Callable[[], HdfsHealth]
    journal: Journal
    valid_length: Callable[[str], int | None] = lambda path: None
    reads_at_once: int = 1000
    clock: Clock = field(default_factory=Clock)


@dataclass(frozen=True)
class Watcher:
    """Who looks on. Setting `stop` interrupts the run.

    `started` gets how many files there are, `on` each file as it ends, `tell` a line of words.
    """

    started: Callable[[int], None] = lambda meant: None
    on: Callable[[Recovery], None] = lambda recovery: None
    tell: Callable[[str], None] = lambda line: None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class RecoveryRun:
    """One recovery for each target, in their order. `stopped` says why not all were asked for; empty if they were."""

    run_id: str
    recoveries: tuple[Recovery, ...]
    stopped: str = ""
    interrupted: bool = False


def execute_recoveries(
    targets: Sequence[Target], tools: Tools, limits: RecoveryLimits, watcher: Watcher
) -> RecoveryRun:
    """Recover these leases, whoever holds them: that they may be recovered was decided before.

    Every file is looked at right before it is asked for, and left alone when it changed. KeyboardInterrupt and
    `watcher.stop` end it early with an outcome for each file, and the record is whole. Raises when the very first
    intent can't be recorded: then nothing was asked of the NameNode. What else fails is in the outcomes.
    """
    return _Execution(targets, tools, limits, watcher).run()


class _Execution:
    def __init__(self, targets: Sequence[Target], tools: Tools, limits: RecoveryLimits, watcher: Watcher) -> None:
        self._tools = tools
        self._watcher = watcher
        self._began = tools.clock.passed()
        self._cases = RecoveryProgress(targets, limits, tools.clock.now())
        self._plan = RecoveryScheduler(
            self._cases, requests_at_once=tools.recoverer.batch, reads_at_once=tools.reads_at_once
        )
        self._unrecorded = _first_of_each_path(targets)
        self._paths = tuple(self._unrecorded)
        self._recoveries: dict[str, Recovery] = {}
        self._untold: deque[Recovery] = deque()
        self._next_flush = _FLUSH_EVERY

    def run(self) -> RecoveryRun:
        self._watcher.started(len(self._paths))
        interrupted = False
        try:
            while not self._cases.done and not interrupted:
                self._carry_out(self._plan.next(self._now()))
                self._tell_ended()
                interrupted = self._watcher.stop.is_set() and not self._cases.done
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            self._break_off()
        self._record_rest()
        if self._cases.breaker.stopped:
            self._watcher.tell(f"nothing more was asked for: {self._cases.breaker.stopped}")
        recoveries = tuple(self._recoveries[path] for path in self._paths)
        return RecoveryRun(self._tools.journal.run_id, recoveries, self._cases.breaker.stopped, interrupted)

    def _now(self) -> timedelta:
        return self._tools.clock.passed() - self._began

    def _carry_out(self, settings: Command) -> None:
        tools, cases = self._tools, self._cases
        match settings:
            case CheckHealth():
                cases.health_seen(self._now(), _ask(tools.health))
            case ReadStates(paths):
                # Written before the look and not after it: a record can take as long as a failover does.
                if self._recorded(paths):
                    self._hear(cases.looked, paths, _ask_each(tools.states.states, paths))
            case RequestRecovery(paths):
                self._request(paths)
            case Poll(paths):
                self._hear(cases.polled, paths, _ask_each(tools.states.closed, paths))
            case Review(paths):
                self._hear(cases.reviewed, paths, _ask_each(tools.states.states, paths))
            case WaitUntil(until):
                if not cases.done:
                    tools.clock.wait(self._watcher.stop, max(until - self._now(), timedelta(0)))

    def _hear(
        self, hear: Callable[[timedelta, str, Said | KstreamError], None], paths: Sequence[str],
        answers: Iterable[Said | KstreamError],
    ) -> None:  # fmt: skip
        now = self._now()
        for path, said in zip(paths, answers, strict=True):
            hear(now, path, said)

    def _request(self, paths: Sequence[str]) -> None:
        if not self._recorded(paths):
            return
        self._cases.asking(self._now(), paths)
        answers = _ask_each(self._tools.recoverer.kick, paths)
        self._cases.answered_in(self._now(), self._tools.recoverer.latency)
        self._hear(self._cases.requested, paths, answers)

    def _recorded(self, paths: Sequence[str]) -> bool:
        """Whether the record says of all of them that they are going to be asked for."""
        while any(path in self._unrecorded for path in paths):
            some = list(islice(self._unrecorded.values(), _INTENTS_AT_ONCE))
            try:
                self._tools.journal.intend(some)
            except KstreamError as error:
                if len(self._unrecorded) == len(self._paths):
                    raise
                self._cases.breaker.stop(f"the audit can't be written: {error.message}")
                return False
            for target in some:
                del self._unrecorded[target.path]
        return True

    def _break_off(self) -> None:
        """One last look at what was asked for. Who can't wait for that either gets it all unconfirmed."""
        paths = self._cases.in_flight
        seen: list[FileState | KstreamError] = []
        try:
            seen = _ask_each(self._tools.states.states, paths)
        except KeyboardInterrupt:
            self._watcher.tell("interrupted again: the end of what was asked for is not looked at")
        self._cases.break_off(zip(paths, seen, strict=False))
        # By file and not by what has ended since: an interrupt can come between an end and its being told.
        self._cases.ended()
        self._untold = deque(self._cases.end_of(path) for path in self._paths if path not in self._recoveries)
        self._tell_ended()

    def _tell_ended(self) -> None:
        self._untold.extend(self._cases.ended())
        while self._untold:
            whole = self._with_valid_length(self._untold[0])
            self._tools.journal.ended(whole)
            self._recoveries[whole.path] = whole
            self._untold.popleft()
            self._watcher.on(whole)
        if self._now() >= self._next_flush:
            self._flush()

    def _with_valid_length(self, recovery: Recovery) -> Recovery:
        if recovery.outcome is not Outcome.CLOSED:
            return recovery
        found = _ask(lambda: self._tools.valid_length(recovery.path))
        return recovery if found is None or isinstance(found, KstreamError) else replace(recovery, valid_length=found)

    def _flush(self) -> None:
        """Without patience: others wait to be looked after, and it is tried again."""
        self._next_flush = self._now() + _FLUSH_EVERY
        try:
            self._tools.journal.flush(timedelta(0))
        except KstreamError as error:
            if not error.retryable:
                self._cases.breaker.stop(f"the audit can't be written: {error.message}")

    def _record_rest(self) -> None:
        try:
            self._tools.journal.flush()
        except KstreamError as error:
            self._watcher.tell(f"what came of these files can't be recorded, and will read as unconfirmed: {error}")


def _first_of_each_path(targets: Iterable[Target]) -> dict[str, Target]:
    found: dict[str, Target] = {}
    for target in targets:
        found.setdefault(target.path, target)
    return found


def _ask(question: Callable[[], Said]) -> Said | KstreamError:
    try:
        return question()
    except KstreamError as error:
        return error


def _ask_each(
    question: Callable[[Sequence[str]], Sequence[Said | KstreamError]], paths: Sequence[str]
) -> list[Said | KstreamError]:
    """One answer for each; what was raised is everybody's."""
    if not paths:
        return []
    try:
        return list(question(paths))
    except KstreamError as error:
        return [error] * len(paths)
