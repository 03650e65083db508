"""Event loops whose clock jumps to the next timer, so that days of waiting take no time, or runs fast."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """A selector that moves the clock instead of sleeping."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everything waits, and nothing would ever come")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time. What would run in a thread runs at once: servers are simulated and answer at once."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as error:
            done.set_exception(error)
        return done


class _Hasty(selectors.SelectSelector):
    """A selector that waits for a fraction of the time."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout and timeout / self._speed)


class HastyLoop(asyncio.SelectorEventLoop):
    """A loop whose clock runs so many times as fast as that of its threads, and can be set `ahead`."""

    def __init__(self, speed: float = 20.0) -> None:
        self._speed, self.ahead = speed, 0.0
        super().__init__(_Hasty(speed))

    def time(self) -> float:
        return super().time() * self._speed + self.ahead


def run(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


def at_once(work: Callable[[], None], seconds: float = 0.0) -> asyncio.Future[None]:
    """Do in the loop what would run in a thread of its own: that takes no virtual time, unless so many seconds."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def do() -> None:
        try:
            work()
            done.set_result(None)
        except Exception as error:
            done.set_exception(error)

    if seconds:
        loop.call_later(seconds, do)
    else:
        do()
    return done
