"""A simulated HDFS in which leases are recovered: a NameNode, its DataNodes, writers and a clock that jumps."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from airflow_kstream.model.clusters.hdfs_health import HdfsHealth
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.leases.lease import Recovery, Target
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import Block, FileState, Fingerprint
from airflow_kstream.supervise.leases.executor import (
    Clock,
    RecoveryResources,
    RecoveryRun,
    TargetSource,
    Watcher,
    execute_recoveries,
)
from airflow_kstream.supervise.leases.journal import Journal

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HEARTBEAT = 3 * SECOND
# How long the NameNode refuses to begin a block's recovery again (30 heartbeats).
AGAIN_AFTER = 90 * SECOND
LOST_LEASE = Conflict("AlreadyBeingCreatedException: the file is under construction but no leases found.")
_TO_FILES = ("grows", "is replaced", "is deleted", "is closed", "is reopened")
FATES = (*_TO_FILES, "no NameNode", "safe mode", "fails over", "interrupt")


@dataclass
class SimFile:
    """A simulated file. `closes`: its DataNode can recover it; `answer`: the NameNode's answer instead of recovery."""

    id: int
    host: str = "dn1"
    length: int = 100
    stamp: int = 1000
    open: bool = True
    closes: bool = True
    coded: bool = False
    answer: KstreamError | None = None
    recovering_since: timedelta | None = None

    def state(self, path: str) -> FileState:
        block = Block(self.id, self.stamp, self.length, not self.open, (self.host,), MIDNIGHT)
        return FileState(path, self.id, "streamer", MIDNIGHT, self.open, self.length, block, self.coded)


@dataclass
class SimulatedHdfs(Clock):
    """A simulated NameNode with its DataNodes and clock. `events` are changes at a time counted from the start.

    Each DataNode closes `per_second` files once its heartbeat has told it of them. `at_answer` hears each answer to a
    request for recovery, with its path.
    """

    files: dict[str, SimFile] = field(default_factory=dict)
    per_second: int = 400
    width: int = 500
    latency: float = 0.004
    version: str = "3.4.3"
    events: list[tuple[timedelta, Callable[[SimulatedHdfs], None]]] = field(default_factory=list)
    safe_mode: bool = False
    away: bool = False
    dead: int = 0
    live: int = 3
    active: str = "nn1"
    active_since: timedelta = -3600 * SECOND
    unwritable: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    time: timedelta = timedelta(0)
    requests: list[tuple[timedelta, str]] = field(default_factory=list)
    reads: dict[str, tuple[timedelta, FileState | None]] = field(default_factory=dict)
    times_read: Counter[str] = field(default_factory=Counter)
    intents: set[str] = field(default_factory=set)
    reported: list[Recovery] = field(default_factory=list)
    written: list[Recovery] = field(default_factory=list)
    most_in_flight: dict[str, int] = field(default_factory=dict)
    polls: int = 0
    beats: list[timedelta] = field(default_factory=list)
    at_answer: Callable[[str, object], object] = lambda path, answer: None
    _expected: dict[str, Fingerprint] = field(default_factory=dict)

    # The run.

    def add(self, *paths: str, **traits: object) -> None:
        for path in paths:
            self.files[path] = replace(SimFile(id=len(self.files) + 1), **traits)  # type: ignore[arg-type]

    def fail_over(self) -> None:
        """Switch the active NameNode; running recoveries are lost with the one that started them."""
        self.active, self.active_since = "nn2", self.time
        for file in self.files.values():
            file.recovering_since = None

    def forget(self, path: str) -> None:
        self.files.pop(path, None)

    def targets(self) -> list[Target]:
        """Return all open files as they are now."""
        return [self.target(path) for path in self.files]

    def target(self, path: str) -> Target:
        """Return an open file as it is now."""
        target = Target(path, self.files[path].state(path).fingerprint, "DFSClient_1", "its holder is dead")
        self._expected[path] = target.expected
        return target

    def recover(
        self, limits: RecoveryLimits | None = None, targets: Sequence[Target] | None = None,
        source: TargetSource | None = None,
    ) -> RecoveryRun:  # fmt: skip
        resources = RecoveryResources(self, self, self.health, cast(Journal, _Audit(self)), clock=self)
        watcher = Watcher(on=self.reported.append, stop=self.stop)
        if targets is None and source is None:
            targets = self.targets()
        return execute_recoveries(targets or (), resources, limits or RecoveryLimits(), watcher, source)

    def at(self, seconds: float, event: Callable[[SimulatedHdfs], None]) -> None:
        self.events.append((timedelta(seconds=seconds), event))
        self.events.sort(key=lambda row: row[0])

    # Its clock.

    def now(self) -> datetime:
        return MIDNIGHT + self.time

    def passed(self) -> timedelta:
        return self.time

    def wait(self, stop: threading.Event, duration: timedelta) -> None:
        self._pass(max(duration, timedelta(milliseconds=1)))

    # Its NameNode.

    @property
    def batch(self) -> int:
        return self.width

    def health(self) -> HdfsHealth:
        self._answer(0.01)
        since = MIDNIGHT + self.active_since
        return HdfsHealth(self.active, self.safe_mode, self.dead, 0, self.version, since, live=self.live)

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]:
        self._answer(0.0003 * len(paths))
        states = [self._state(path) for path in paths]
        for path, state in zip(paths, states, strict=True):
            self.times_read[path] += 1
            self.reads[path] = (self.time, state if isinstance(state, FileState) else None)
        return states

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        self.polls += len(paths)
        self._answer(0.0001 * len(paths))
        return [not self.files[path].open if path in self.files else NotFound("gone") for path in paths]

    def request_recovery(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        for path in paths:
            self._check_request(path)
            self.requests.append((self.time, path))
        self._answer(self.latency * len(paths) / 32)
        answers = [self._answer_request(path) for path in paths]
        for path, answer in zip(paths, answers, strict=True):
            self.at_answer(path, answer)
        self._count_in_flight()
        return answers

    def close(self) -> None:
        return None

    def _answer(self, seconds: float) -> None:
        self._pass(timedelta(seconds=seconds))
        if self.away:
            raise Unavailable("no active NameNode found")

    def _state(self, path: str) -> FileState | KstreamError:
        return self.files[path].state(path) if path in self.files else NotFound("it does not exist")

    def _check_request(self, path: str) -> None:
        """Check what must hold for every request."""
        read_at, state = self.reads[path]
        assert path in self.intents, "requested without a record of the intent"
        assert self.time - read_at <= 2 * SECOND, "requested long after it was read"
        assert state is not None
        assert state.is_open
        assert state.fingerprint.same_as(self._expected[path]), "requested although it had changed"

    def _answer_request(self, path: str) -> bool | KstreamError:
        file = self.files.get(path)
        if file is None:
            return NotFound(f"File does not exist: {path}")
        if self.safe_mode:
            return Unavailable("SafeModeException: Name node is in safe mode")
        if not file.open:
            return True
        if file.answer:
            return file.answer
        if file.recovering_since is None or self.time - file.recovering_since >= AGAIN_AFTER:
            file.recovering_since = self.time
        return False

    def _count_in_flight(self) -> None:
        running = [file for file in self.files.values() if file.open and file.recovering_since is not None]
        counts = {
            "all": running,
            "coded": [f for f in running if f.coded],
            "dn1": [f for f in running if f.host == "dn1"],
        }
        for name, counted in counts.items():
            self.most_in_flight[name] = max(self.most_in_flight.get(name, 0), len(counted))

    # What happens while time passes.

    def _pass(self, duration: timedelta) -> None:
        until = self.time + duration
        while self.events and self.events[0][0] <= until:
            when, event = self.events.pop(0)
            self._go_to(max(when, self.time))
            event(self)
        self._go_to(until)

    def _go_to(self, time: timedelta) -> None:
        lasts, self.time = (time - self.time).total_seconds(), time
        if self.safe_mode:
            return
        heard: dict[str, list[SimFile]] = {}
        for file in self.files.values():
            since = file.recovering_since
            if since is not None and file.open and file.closes and time - since >= HEARTBEAT:
                heard.setdefault(file.host, []).append(file)
        for files in heard.values():
            for file in files[: round(lasts * self.per_second + 0.5)]:
                file.open, file.stamp, file.recovering_since = False, file.stamp + 7000, None


@dataclass
class _Audit:
    """A journal in memory."""

    hdfs: SimulatedHdfs
    run_id: str = "20260101T000000Z-00000000"

    def intend(self, targets: Sequence[Target]) -> None:
        if self.hdfs.unwritable:
            raise Denied("Permission denied: /kstream")
        self.hdfs.intents |= {target.path for target in targets}

    def beat(self) -> None:
        self.hdfs.beats.append(self.hdfs.time)

    def ended(self, recovery: Recovery) -> None:
        self.hdfs.written.append(recovery)

    def flush(self, timeouts: timedelta = SECOND) -> None:
        if self.hdfs.unwritable:
            raise Denied("Permission denied: /kstream")


def let_happen(hdfs: SimulatedHdfs, fate: str, path: str, seconds: float, lasts: float) -> None:
    def on_file(**changes: object) -> None:
        def change(w: SimulatedHdfs) -> None:
            if path in w.files:
                w.files[path] = replace(w.files[path], **changes)  # type: ignore[arg-type]

        hdfs.at(seconds, change)

    match fate:
        case "grows":
            on_file(length=200)
        case "is replaced":
            on_file(id=1000, open=True, stamp=5)
        case "is deleted":
            hdfs.at(seconds, lambda w: w.forget(path))
        case "is closed":
            on_file(open=False)
        case "is reopened":
            on_file(open=True, stamp=2000)
        case "no NameNode":
            hdfs.at(seconds, lambda w: setattr(w, "away", True))
            hdfs.at(seconds + lasts, lambda w: setattr(w, "away", False))
        case "safe mode":
            hdfs.at(seconds, lambda w: setattr(w, "safe_mode", True))
            hdfs.at(seconds + lasts, lambda w: setattr(w, "safe_mode", False))
        case "fails over":
            hdfs.at(seconds, SimulatedHdfs.fail_over)
        case "interrupt":
            hdfs.at(seconds, lambda w: w.stop.set())
