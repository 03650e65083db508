"""Execution of a recovery: carry out the scheduler's commands, and record every intent and result."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol, TypeVar

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.leases.lease import Outcome, Recovery, Target
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.policy.leases.file_recovery import (
    CheckHealth,
    Command,
    JudgeMore,
    Poll,
    ReadStates,
    RequestRecovery,
    Review,
    WaitUntil,
)
from airflow_kstream.policy.leases.observer import RecoveryObserver
from airflow_kstream.policy.leases.outcomes import RecoveryProgress
from airflow_kstream.policy.leases.scheduler import RecoveryScheduler
from airflow_kstream.supervise.leases.journal import Journal

Answer = TypeVar("Answer")
# A killed run leaves at most this many intents without a result and without a request to the NameNode.
_INTENTS_AT_ONCE = 1000
_FLUSH_EVERY = timedelta(seconds=10)


class FileStates(Protocol):
    """A source of many files' states at once; an error is either one file's answer, or raised for all of them."""

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]: ...

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]: ...


class LeaseRecoverer(Protocol):
    """A client that requests lease recoveries from the NameNode. It does not wait for their end.

    `batch` is the largest number of paths for one call. `latency` is the NameNode's mean response time in the last
    call, in seconds; 0.0 if unknown.
    """

    @property
    def batch(self) -> int: ...

    @property
    def latency(self) -> float: ...

    def request_recovery(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        """Return for each path, in order: True if it is closed now, False if its recovery was begun, else the error.

        Errors are NotFound, Denied, Conflict with the NameNode's words, and Unavailable, even if the request may have
        arrived; one that is raised is the answer for all.
        """

    def close(self) -> None: ...


class TargetSource(Protocol):
    """A judge of further files while others are recovered.

    `due` is the time until some can be judged; None if none is left. `judged` judges at most so many of them that are
    due, and returns those that may be recovered, each with the state that decided; None if it has to be read again
    before its request, because something happened in between.
    """

    def due(self) -> timedelta | None: ...

    def judged(self, most: int) -> Sequence[tuple[Target, FileState | None]]: ...


class Clock:
    """The clock of this host: time of day, elapsed time, and waiting."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def passed(self) -> timedelta:
        return timedelta(seconds=time.monotonic())

    def wait(self, stop: threading.Event, duration: timedelta) -> None:
        stop.wait(duration.total_seconds())


@dataclass(frozen=True)
class RecoveryResources:
    """The clients by which a recovery reads and requests, and the journal in which it is recorded.

    `valid_length` is called for each file that was closed, so it should be cheap. `reads_at_once` is the most files in
    one call of `states`; set it low if each of them takes long.
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
    """The observer of a run. Setting `stop` interrupts the run.

    `started` gets the number of files that are recovered from now on, `on` each recovery as it ends, `tell` a line of
    text.
    """

    started: Callable[[int], None] = lambda files: None
    on: Callable[[Recovery], None] = lambda recovery: None
    tell: Callable[[str], None] = lambda line: None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class RecoveryRun:
    """One recovery for each target, in their order. `stopped` is why the run ended early; empty if it did not."""

    run_id: str
    recoveries: tuple[Recovery, ...]
    stopped: str = ""
    interrupted: bool = False


def execute_recoveries(
    targets: Sequence[Target], resources: RecoveryResources, limits: RecoveryLimits, watcher: Watcher,
    source: TargetSource | None = None,
) -> RecoveryRun:  # fmt: skip
    """Recover these leases, regardless of their holders: the caller has decided that they may be recovered.

    Those that `source` decides about during the run are recovered as well. Once the run stops it decides no further.

    Every file is checked right before its request, and left alone if it changed. KeyboardInterrupt and `watcher.stop`
    end the run early with an outcome for each file and a complete journal. Other failures are in the outcomes.

    Raises KstreamError: when the very first intent can't be recorded; then no request was sent to the NameNode.
    """
    return RecoveryExecutor(targets, resources, limits, watcher, source).run()


class RecoveryExecutor:
    """The loop of one run: it carries out the scheduler's command, hands the answers to the observer, and records."""

    def __init__(
        self, targets: Sequence[Target], resources: RecoveryResources, limits: RecoveryLimits, watcher: Watcher,
        source: TargetSource | None = None,
    ) -> None:  # fmt: skip
        self._resources = resources
        self._source = source
        self._watcher = watcher
        self._began = resources.clock.passed()
        self._progress = RecoveryProgress(targets, resources.clock.now())
        self._scheduler = RecoveryScheduler(
            self._progress.files,
            limits,
            requests_at_once=resources.recoverer.batch,
            reads_at_once=resources.reads_at_once,
        )
        self._observer = RecoveryObserver(self._progress, self._scheduler, limits)
        self._paths = [file.path for file in self._progress.files]
        self._unrecorded = {file.path: file.target for file in self._progress.files}
        self._recorded_any = False
        self._recoveries: dict[str, Recovery] = {}
        self._unreported: deque[Recovery] = deque()
        self._next_flush = _FLUSH_EVERY

    def run(self) -> RecoveryRun:
        if self._paths:
            self._watcher.started(len(self._paths))
        self._observer.judged(self._judging_due())
        interrupted = False
        try:
            while not self._done and not interrupted:
                now = self._now()
                self._observer.time_passed(now)
                self._carry_out(self._scheduler.next(now))
                self._report_ended()
                interrupted = self._watcher.stop.is_set() and not self._done
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            self._break_off()
        self._record_rest()
        if self._scheduler.breaker.stopped:
            self._watcher.tell(f"recovery stopped early: {self._scheduler.breaker.stopped}")
        recoveries = tuple(self._recoveries[path] for path in self._paths)
        return RecoveryRun(self._resources.journal.run_id, recoveries, self._scheduler.breaker.stopped, interrupted)

    @property
    def _done(self) -> bool:
        return self._progress.done and (self._scheduler.judging_due is None or bool(self._scheduler.breaker.stopped))

    def _now(self) -> timedelta:
        return self._resources.clock.passed() - self._began

    def _carry_out(self, command: Command) -> None:
        states, observer = self._resources.states, self._observer
        match command:
            case CheckHealth():
                observer.health_seen(self._now(), _ask(self._resources.health))
            case JudgeMore(most):
                self._judge(most)
            case ReadStates(paths):
                # Written before the read, not after it: writing a record can take as long as a failover.
                if self._recorded(paths):
                    self._observe(observer.state_read, paths, _ask_each(states.states, paths))
            case RequestRecovery(paths):
                self._request(paths)
            case Poll(paths):
                self._observe(observer.polled, paths, _ask_each(states.closed, paths))
            case Review(paths):
                self._observe(observer.state_reviewed, paths, _ask_each(states.states, paths))
            case WaitUntil(until):
                if not self._done:
                    self._resources.clock.wait(self._watcher.stop, max(until - self._now(), timedelta(0)))

    def _observe(
        self, observe: Callable[[timedelta, str, Answer | KstreamError], None], paths: Sequence[str],
        answers: Iterable[Answer | KstreamError],
    ) -> None:  # fmt: skip
        now = self._now()
        for path, answer in zip(paths, answers, strict=True):
            observe(now, path, answer)

    def _judging_due(self) -> timedelta | None:
        until = self._source.due() if self._source else None
        return None if until is None else self._now() + until

    def _judge(self, most: int) -> None:
        assert self._source
        began = self._now()
        try:
            judged = self._source.judged(most)
        except KstreamError as error:
            self._observer.not_judged(self._now(), error)
            return
        self._observer.judged(self._judging_due())
        self._add(judged, began)

    def _add(self, judged: Sequence[tuple[Target, FileState | None]], read_at: timedelta) -> None:
        states = {target.path: state for target, state in judged if state}
        files = self._progress.add(target for target, _ in judged)
        if files:
            self._watcher.started(len(files))
        self._paths += [file.path for file in files]
        self._unrecorded |= {file.path: file.target for file in files}
        self._scheduler.was_added(file for file in files if file.path not in states)
        if self._recorded([file.path for file in files]):
            for path, state in states.items():
                self._observer.state_read(read_at, path, state)

    def _request(self, paths: Sequence[str]) -> None:
        if not self._recorded(paths):
            return
        self._observer.requesting(self._now(), paths)
        answers = _ask_each(self._resources.recoverer.request_recovery, paths)
        self._observer.answered_in(self._now(), self._resources.recoverer.latency)
        self._observe(self._observer.requested, paths, answers)

    def _recorded(self, paths: Sequence[str]) -> bool:
        """Record the intents for all of these files, and tell whether that worked."""
        while any(path in self._unrecorded for path in paths):
            some = list(islice(self._unrecorded.values(), _INTENTS_AT_ONCE))
            try:
                self._resources.journal.intend(some)
            except KstreamError as error:
                if not self._recorded_any:
                    raise
                self._scheduler.breaker.stop(f"the journal can't be written: {error.message}")
                return False
            self._recorded_any = True
            for target in some:
                del self._unrecorded[target.path]
        return True

    def _break_off(self) -> None:
        """Read the recoveries in progress one last time. A second interrupt leaves them all unconfirmed."""
        paths = self._progress.in_flight
        states: list[FileState | KstreamError] = []
        try:
            states = _ask_each(self._resources.states.states, paths)
        except KeyboardInterrupt:
            self._watcher.tell("interrupted again: not checking the recoveries in progress")
        self._observer.break_off(zip(paths, states, strict=False))
        # By file, not by what has ended since: an interrupt can fall between an end and the report of it.
        self._progress.ended()
        self._unreported = deque(self._progress.end_of(path) for path in self._paths if path not in self._recoveries)
        self._report_ended()

    def _report_ended(self) -> None:
        self._unreported.extend(self._progress.ended())
        while self._unreported:
            recovery = self._with_valid_length(self._unreported[0])
            self._resources.journal.ended(recovery)
            self._recoveries[recovery.path] = recovery
            self._unreported.popleft()
            self._watcher.on(recovery)
        if self._now() >= self._next_flush:
            self._flush()

    def _with_valid_length(self, recovery: Recovery) -> Recovery:
        if recovery.outcome is not Outcome.CLOSED:
            return recovery
        length = _ask(lambda: self._resources.valid_length(recovery.path))
        return replace(recovery, valid_length=length) if isinstance(length, int) else recovery

    def _flush(self) -> None:
        """Write without patience: other files are waiting, and the next flush tries again.

        While files are left to be judged, other runs should see this one at work; not while it waits for DataNodes.
        """
        self._next_flush = self._now() + _FLUSH_EVERY
        try:
            self._resources.journal.flush(timedelta(0))
            if self._scheduler.judging_due is not None:
                self._resources.journal.beat()
        except KstreamError as error:
            if not error.retryable:
                self._scheduler.breaker.stop(f"the journal can't be written: {error.message}")

    def _record_rest(self) -> None:
        try:
            self._resources.journal.flush()
        except KstreamError as error:
            self._watcher.tell(f"the outcomes could not be recorded; these files will show as unconfirmed: {error}")


def _ask(question: Callable[[], Answer]) -> Answer | KstreamError:
    try:
        return question()
    except KstreamError as error:
        return error


def _ask_each(
    question: Callable[[Sequence[str]], Sequence[Answer | KstreamError]], paths: Sequence[str]
) -> list[Answer | KstreamError]:
    """Return one answer for each path; an error that was raised is the answer for all."""
    if not paths:
        return []
    try:
        return list(question(paths))
    except KstreamError as error:
        return [error] * len(paths)
