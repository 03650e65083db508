"""An event loop whose clock jumps to the next timer, so that days of waiting take no time."""

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


def run(work: Coroutine[Any, Any, T], loop: VirtualLoop) -> T:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


def at_once(work: Callable[[], None]) -> asyncio.Future[None]:
    """Do in the loop what would run in a thread of its own: that takes no virtual time."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    try:
        work()
        done.set_result(None)
    except Exception as error:
        done.set_exception(error)
    return done
