"""Event loops in programs: a loop's clock is its program's, and it leaves the processor only where it selects.

What a loop hands to an executor runs in a thread of its process, one after the other in each pool. So a slow server
holds up a thread and never the loop, as in a triggerer. Code of the loop's own that would wait, for a server or for
time, is an error of the history. Threads change hands where they wait, not between any two instructions.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from airflow_kstream.states import recorder
from airflow_kstream.triggers import notifying, poller, shared
from tests.simulation.virtual import Program, SimulationError, Thread, current

# A loop that turns more often without any time passing waits for nothing.
_MOST_TURNS = 5000
# What the modules of a triggerer keep for their process, and how it begins.
KEPT: Mapping[tuple[ModuleType, str], Callable[[], object]] = {
    (poller, "_clusters"): dict,
    (poller, "_environments"): dict,
    (poller, "_turns"): dict,
    (poller, "_tellers"): dict,
    (shared, "_in_use"): dict,
    (notifying, "_process"): notifying._Process,
    (recorder, "_process"): recorder._Process,
}


class Loop(asyncio.BaseEventLoop):
    """The event loop of a thread, in whose process the modules keep what is theirs. It has no sockets.

    `failed` gets what nobody in the loop caught.
    """

    def __init__(self, process: Program, failed: Callable[[str], None]) -> None:
        super().__init__()
        self._selector = self
        self._kept = {place: make() for place, make in KEPT.items()}
        self._failed = failed
        self._turns, self._turned = 0, -1.0
        self._thread = Thread(process, self.run_forever)
        self._pool = Pool(process)
        self.set_exception_handler(lambda loop, context: self._complain(context))

    def __del__(self) -> None:
        """Say nothing: a thread that was ended before its first step leaves its loop open, which holds nothing yet."""

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """End it and all threads of its process, as a SIGKILL of a triggerer does."""
        for thread in self._thread.process.threads:
            thread.vanish()

    def time(self) -> float:
        return self._thread.monotonic

    def run_forever(self) -> None:
        self._enter()
        try:
            while True:
                self._run_once()  # type: ignore[attr-defined]
        finally:
            self._leave_everything()

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        done = self.create_future()

        def settle(result: object, error: Exception | None) -> None:
            if done.cancelled():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        pool = executor if isinstance(executor, Pool) else self._pool
        pool.submit(func, *args, settled=lambda *outcome: self.call_soon_threadsafe(settle, *outcome))
        return done

    def select(self, timeout: float | None) -> tuple[()]:
        """Let others run, as a selector does, until a timer is due or a thread calls."""
        self._require_progress()
        if timeout is None or timeout > 0:
            events._set_running_loop(None)
            try:
                self._thread.listen(timeout)
            finally:
                self._enter()
        return ()

    def _require_progress(self) -> None:
        """End a process whose loop turns for ever without waiting: time would stand still for all of the history."""
        self._turns = self._turns + 1 if self.time() == self._turned else 0
        self._turned = self.time()
        if self._turns > _MOST_TURNS:
            self._failed(f"its loop turned {self._turns} times at one moment")
            self._thread.process.kill()

    def _enter(self) -> None:
        for (module, name), value in self._kept.items():
            setattr(module, name, value)
        events._set_running_loop(self)

    def _leave_everything(self) -> None:
        """Do nothing more for what was under way; its own ends, which a SIGKILL leaves out, reach no server."""
        for task in asyncio.all_tasks(self):
            with suppress(RuntimeError):
                task.get_coro().close()
        events._set_running_loop(None)
        self.close()

    def _process_events(self, found: object) -> None:
        """Act as a loop without sockets."""

    def _write_to_self(self) -> None:
        self._thread.alert()

    def _complain(self, context: Mapping[str, Any]) -> None:
        if not self._thread.over:
            error = context.get("exception")
            self._failed(f"{context['message']}: {error!r}")


class Pool:
    """A pool of one thread, in the place of ThreadPoolExecutor(1)."""

    def __init__(self, process: Program | int | None = None, thread_name_prefix: str = "") -> None:
        here = process if isinstance(process, Program) else current()
        if here is None:
            raise SimulationError("a pool outside of any program")
        self._process = here.process
        self._asked: deque[Callable[[], None]] = deque()
        self._thread: Thread | None = None

    def submit(
        self, func: Callable[..., Any], *args: Any, settled: Callable[..., object] = lambda result, error: None
    ) -> None:
        def ask() -> None:
            try:
                result = func(*args)
            except Exception as error:
                settled(None, error)
            else:
                settled(result, None)

        self._asked.append(ask)
        if self._thread is None or self._thread.over:
            self._thread = Thread(self._process, self._work).start()

    def shutdown(self, *, wait: bool) -> None:
        """Act as an executor that still does what it was asked."""

    def _work(self) -> None:
        while self._asked:
            self._asked.popleft()()
