"""A small process supervisor: starts named children, respawns what dies, and leaves nothing behind.

Between the supervisor and each child is a reaper (`reaper.py`), which ends the child's whole tree when the supervisor
stops or dies, by any signal. The supervisor is for a handful of long-running services on one machine; it is not an init
system: it knows no dependencies between children and does not check their health.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from airflow_kstream.minicluster.processes import Launch, log_tail
from airflow_kstream.model.errors import InvalidInput, MiniclusterError

_REAPER = Path(__file__).with_name("reaper.py")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Child:
    """A program to run. `grace` is the time between SIGTERM and SIGKILL, in seconds."""

    name: str
    launch: Launch
    grace: float = 10.0


@dataclass(frozen=True)
class RespawnLimits:
    """The limits of respawns. `backoff` is the pause before one, in seconds; more than `per_minute` deaths end them."""

    backoff: float = 0.5
    per_minute: int = 5


class Happening(StrEnum):
    STARTED = "started"
    DIED = "died"
    RESPAWNED = "respawned"
    GAVE_UP = "gave up"
    STOPPED = "stopped"


@dataclass(frozen=True)
class SupervisorEvent:
    """An event. `detail` is for people: the exit status of the child, and the end of its log if it is given up."""

    happening: Happening
    child: str
    detail: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


Listener = Callable[[SupervisorEvent], None]


def _exit_in_words(code: int) -> str:
    return f"killed by signal {code - 128}" if code > 128 else f"ended with exit code {code}"


class _Tree:
    """One run of a child: its reaper, the child, and everything below. The constructor starts it; raises OSError."""

    def __init__(self, child: Child) -> None:
        self._released = threading.Lock()
        read_fd, self._hold_fd = os.pipe()
        try:
            reaper = (sys.executable, "-P", str(_REAPER), str(read_fd), str(child.grace))
            self._process = child.launch.start(reaper, (read_fd,))
        except OSError:
            self.release()
            raise
        finally:
            os.close(read_fd)

    def wait(self, timeout: float | None = None) -> int:
        return self._process.wait(timeout)

    def release(self) -> None:
        """Ask the reaper to end the tree; it also does so when this process ends, which closes the pipe."""
        if self._released.acquire(blocking=False):
            os.close(self._hold_fd)

    def processes(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def crash(self) -> list[int]:
        """SIGKILL everything below the reaper, as if a machine had lost power; return the process ids."""
        frozen: set[psutil.Process] = set()
        # Freeze them first: none may see another one die and still write to a database.
        while running := set(self.processes()) - frozen:
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            frozen |= running
        for process in frozen:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(list(frozen), timeout=5)
        return sorted(process.pid for process in frozen)

    def destroy(self) -> None:
        self.crash()
        self._process.kill()
        self._process.wait()


class _Kept:
    """A child with the thread that respawns it."""

    def __init__(self, child: Child, limits: RespawnLimits, tell: Listener) -> None:
        self.child = child
        self.gave_up = ""
        self._limits = limits
        self._tell = tell
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._crash_ordered = False
        self._deaths: deque[float] = deque()
        self._tree = _Tree(child)
        self._thread = threading.Thread(target=self._keep, name=f"supervisor-{child.name}", daemon=True)

    def start(self) -> None:
        self._tell(SupervisorEvent(Happening.STARTED, self.child.name))
        self._thread.start()

    def _keep(self) -> None:
        while True:
            code = self._tree.wait()
            self._tree.release()
            if self._stopping.is_set():
                self._tell(SupervisorEvent(Happening.STOPPED, self.child.name, _exit_in_words(code)))
                return
            self._tell(SupervisorEvent(Happening.DIED, self.child.name, _exit_in_words(code)))
            if self._too_often() or not self._respawn():
                return

    def _too_often(self) -> bool:
        ordered, self._crash_ordered = self._crash_ordered, False
        if ordered:
            return False
        now = time.monotonic()
        self._deaths.append(now)
        while now - self._deaths[0] > 60:
            self._deaths.popleft()
        if len(self._deaths) <= self._limits.per_minute:
            return False
        tail = log_tail(self.child.launch.output)
        self.gave_up = f"died {len(self._deaths)} times within a minute; the end of {self.child.launch.output}:\n{tail}"
        self._tell(SupervisorEvent(Happening.GAVE_UP, self.child.name, self.gave_up))
        return True

    def _respawn(self) -> bool:
        self._stopping.wait(self._limits.backoff)
        with self._lock:
            if self._stopping.is_set():
                return False
            self._tree = _Tree(self.child)
        self._tell(SupervisorEvent(Happening.RESPAWNED, self.child.name))
        return True

    def processes(self) -> list[psutil.Process]:
        with self._lock:
            return self._tree.processes()

    def crash(self) -> list[int]:
        with self._lock:
            tree, self._crash_ordered = self._tree, True
        return tree.crash()

    def release(self) -> None:
        with self._lock:
            self._stopping.set()
            self._tree.release()

    def join(self, timeout: float) -> None:
        try:
            self._tree.wait(timeout)
        except subprocess.TimeoutExpired:
            self._tree.destroy()
        self._thread.join()


class ProcessSupervisor:
    """A supervisor that starts, respawns, crashes and stops children by name. Every method is safe from any thread.

    `on_event` is called for one event at a time, from threads of the supervisor; its errors are logged and dropped. If
    a SIGTERM ends this process without `stop()`, the children end too, but after this process.
    """

    def __init__(self, on_event: Listener = lambda event: None, limits: RespawnLimits | None = None) -> None:
        self._on_event = on_event
        self._limits = limits or RespawnLimits()
        self._event_lock = threading.Lock()
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, child: Child) -> None:
        """Start a child. Raises InvalidInput: when its name is in use, MiniclusterError: when it can't be started."""
        with self._lock:
            if self._stopped:
                raise MiniclusterError("the supervisor was stopped", tried=f"start {child.name}")
            if child.name in self._kept:
                raise InvalidInput(f"a child named {child.name!r} is kept already")
            try:
                kept = self._kept[child.name] = _Kept(child, self._limits, self._tell)
            except OSError as error:
                raise MiniclusterError(str(error), tried=f"start {child.name}") from error
        kept.start()

    def kill(self, name: str) -> list[int]:
        """SIGKILL the child's whole tree, as if its machine had crashed, and return the ids of the killed processes.

        The supervisor respawns it; this death doesn't count against the limits. Raises InvalidInput: when the name is
        unknown.
        """
        return self._named(name).crash()

    def processes(self, name: str) -> list[psutil.Process]:
        """Return the child and all its descendants, daemons included. Raises InvalidInput: when the name is unknown."""
        return self._named(name).processes()

    @property
    def given_up(self) -> Mapping[str, str]:
        """Return the children that died too often, with the end of their logs."""
        with self._lock:
            return {name: kept.gave_up for name, kept in self._kept.items() if kept.gave_up}

    def stop(self) -> None:
        """Send SIGTERM to every child, SIGKILL after its grace, and return when no process of any tree is left."""
        with self._lock:
            self._stopped = True
            children = list(self._kept.values())
        for child in children:
            child.release()
        for child in children:
            child.join(timeout=child.child.grace + 5)

    def _named(self, name: str) -> _Kept:
        with self._lock:
            if name not in self._kept:
                raise InvalidInput(f"no child is named {name!r}; there are {', '.join(sorted(self._kept)) or 'none'}")
            return self._kept[name]

    def _tell(self, event: SupervisorEvent) -> None:
        with self._event_lock:
            try:
                self._on_event(event)
            except Exception:
                log.exception("The listener failed on %s", event)
