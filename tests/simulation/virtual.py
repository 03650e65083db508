"""Virtual time: programs as greenlets that one scheduler runs in turn, and clocks that only it moves.

The product runs unchanged in a `Program`. Control changes hands only where it sleeps or sends a request, so a history
depends on its seed alone. Code outside of a program, such as pytest's own threads, keeps the real clocks.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from types import ModuleType
from typing import Any, Self
from unittest.mock import patch

from greenlet import getcurrent, greenlet

# What virtual second 0 is called: 2026-01-01T00:00:00Z.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
# Seconds after which a frozen program sees that it was thawed.
_THAWS_WITHIN = 60.0
# The rooms whose modules read a clock; model and policy are told the time.
_ROOMS = (
    "airflow_kstream.clients",
    "airflow_kstream.supervise.streams",
    "airflow_kstream.supervise.clusters",
    "airflow_kstream.triggers",
    "airflow_kstream.operators.streams",
    "airflow_kstream.states",
    "airflow_kstream.notifications",
)


class Killed(BaseException):
    """The end of a program as by SIGKILL: what it would still send or wait for never happens."""


class SimulationError(BaseException):
    """A gap of the simulation itself: a request or program that it doesn't know. No `except Exception` hides it."""


class Scheduler:
    """The events to come, in the order of their time. `now` is in seconds since the history began: the true time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._number = 0
        self._events: list[tuple[float, int, Callable[[], object]]] = []

    def at(self, moment: float, act: Callable[[], object]) -> None:
        self._number += 1
        heapq.heappush(self._events, (max(moment, self.now), self._number, act))

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.at(self.now + seconds, act)

    def run(self, until: float, enough: Callable[[], bool] = lambda: False) -> None:
        while self._events and self._events[0][0] <= until and not enough():
            self.now, _, act = heapq.heappop(self._events)
            act()
        if not enough():
            self.now = until


class Program(greenlet):  # type: ignore[misc]  # greenlet ships no types
    """A program on a host of ours whose clock is `skew` seconds ahead. `rng` draws its own chances.

    `threads` end and freeze with it, and their requests count as its own.
    """

    def __init__(
        self, scheduler: Scheduler, name: str, main: Callable[[], object], seed: str, skew: float = 0.0
    ) -> None:
        super().__init__(self._guarded)
        self.name = name
        self.skew = skew
        self.rng = random.Random(f"{seed}/{name}")
        self.over = False
        self.frozen_until = 0.0
        self.error: BaseException | None = None
        self.requests = 0
        self.writes = 0
        self.since_write = 0
        self.threads: list[Thread] = []
        self._scheduler = scheduler
        self._main = main
        self._turn = 0
        self._listens = False

    @property
    def process(self) -> Program:
        return self

    @property
    def keeper(self) -> str:
        """Return the name of the first process of its kind, which others follow after a crash."""
        return self.name.partition(".")[0]

    def start(self, delay: float = 0.0) -> Self:
        self._scheduler.after(delay, self._wake(self._turn))
        return self

    def pause(self, seconds: float) -> None:
        """Wait in virtual time, and for as long as the program is frozen."""
        if self.over:
            raise Killed
        if asyncio._get_running_loop() is not None:
            self.process.error = SimulationError("code of an event loop waits, and keeps the loop from all others")
            self.process.kill()
        self._turn += 1
        self._scheduler.after(seconds, self._wake(self._turn))
        self.parent.switch()

    def listen(self, seconds: float | None = None) -> None:
        """Wait for at most so many seconds, or until `alert`."""
        self._listens = True
        try:
            self.pause(math.inf if seconds is None else seconds)
        finally:
            self._listens = False

    def alert(self) -> None:
        """End its listening, if it listens."""
        if self._listens:
            self._listens = False
            self._scheduler.after(0.0, self._wake(self._turn))

    def freeze(self, seconds: float) -> None:
        self.frozen_until = max(self.frozen_until, self._scheduler.now + seconds)

    def kill(self) -> None:
        """End it as by SIGKILL; from inside, the caller ends as well."""
        if self.over:
            return
        everything: list[Program] = [self, *self.threads]
        for each in everything:
            each.over = True
        for each in everything:
            each.vanish()
        if getcurrent() in everything:
            raise Killed

    def vanish(self) -> None:
        """End it where it stands, unless that is here."""
        self.over = True
        if self and getcurrent() is not self:
            self.parent = getcurrent()
            self.throw(Killed)

    @property
    def time(self) -> float:
        return EPOCH + self._scheduler.now + self.skew

    @property
    def monotonic(self) -> float:
        # A host that booted at another moment.
        return self._scheduler.now + 1000.0 + abs(self.skew) * 7

    def _wake(self, turn: int) -> Callable[[], None]:
        def wake() -> None:
            if self.over or turn != self._turn:
                return
            frozen_until = self.process.frozen_until
            if frozen_until > self._scheduler.now:
                # It may thaw earlier than it was meant to: see `history`.
                self._scheduler.at(min(frozen_until, self._scheduler.now + _THAWS_WITHIN), wake)
                return
            self.parent = getcurrent()
            self.switch()

        return wake

    def _guarded(self) -> None:
        """Run; what is no error of the program, such as pytest's word that a test takes too long, ends the history."""
        try:
            self._main()
        except Killed:
            pass
        except (Exception, SimulationError) as error:
            self.error = error
        finally:
            self.over = True


class Thread(Program):
    """A thread of a process, with its clocks."""

    def __init__(self, process: Program, main: Callable[[], object]) -> None:
        super().__init__(process._scheduler, process.name, main, "", process.skew)
        self._process = process
        self.over = process.over
        process.threads = [*(thread for thread in process.threads if not thread.over), self]

    def _guarded(self) -> None:
        """Run; an error that nothing in the thread catches is one of its process."""
        super()._guarded()
        if self.error is not None:
            self._process.error = self.error
            with suppress(Killed):
                self._process.kill()

    @property
    def process(self) -> Program:
        return self._process


def current() -> Program | None:
    program = getcurrent()
    return program if isinstance(program, Program) else None


class _AlsoReal(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _VirtualDatetime(datetime, metaclass=_AlsoReal):
    """The name `datetime` in the product's modules; what it makes are plain datetimes."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(time.time(), tz)

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(timestamp, tz)

    @classmethod
    def fromisoformat(cls, text: str) -> datetime:  # type: ignore[override]
        return datetime.fromisoformat(text)


@contextmanager
def virtual() -> Iterator[None]:
    """Give programs virtual clocks, sleeps and random numbers."""
    real_time, real_monotonic, real_sleep, real_uuid = time.time, time.monotonic, time.sleep, uuid.uuid4

    def sleep(seconds: float) -> None:
        program = current()
        program.pause(seconds) if program else real_sleep(seconds)

    def uuid4() -> uuid.UUID:
        program = current()
        return uuid.UUID(int=program.rng.getrandbits(128), version=4) if program else real_uuid()

    chances = random.getstate()
    random.seed(0)
    virtual_ones: dict[tuple[ModuleType, str], Callable[..., Any]] = {
        (time, "time"): lambda: program.time if (program := current()) else real_time(),
        (time, "monotonic"): lambda: program.monotonic if (program := current()) else real_monotonic(),
        (time, "sleep"): sleep,
        (uuid, "uuid4"): uuid4,
    }
    with ExitStack() as stack:
        for (module, name), value in virtual_ones.items():
            # Whole programs live by this clock, libraries included, and no two draw the same number.
            stack.enter_context(patch.object(module, name, value))
        stack.enter_context(_virtual_datetimes())
        try:
            yield
        finally:
            random.setstate(chances)


@contextmanager
def _virtual_datetimes() -> Iterator[None]:
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(_ROOMS) and getattr(module, "datetime", None) is datetime
    ]
    for module in modules:
        module.datetime = _VirtualDatetime  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.datetime = datetime  # type: ignore[attr-defined]
