"""Running steps in parallel, each as soon as the steps that it needs are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass


@dataclass(frozen=True)
class StartupTask:
    """A step of the start. `run` gets an event that is set when another step fails: long waits check it and give up."""

    name: str
    run: Callable[[threading.Event], object]
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Progress:
    """A report to the caller: a step began (`seconds` is None) or was done after that many seconds."""

    step: str
    seconds: float | None = None


Listener = Callable[[Progress], None]


def run_steps(steps: Sequence[StartupTask], listener: Listener) -> None:
    """Run all steps. The first failing step's error is raised after every running step has ended."""
    abandoned = threading.Event()
    waiting, done = list(steps), set[str]()
    running: dict[Future[object], str] = {}
    with ThreadPoolExecutor(len(steps)) as pool:
        try:
            while waiting or running:
                for step in [step for step in waiting if step.needs <= done]:
                    waiting.remove(step)
                    running[pool.submit(_timed, step, abandoned, listener)] = step.name
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
                    done.add(running.pop(future))
        except BaseException:
            abandoned.set()
            raise


def _timed(step: StartupTask, abandoned: threading.Event, listener: Listener) -> None:
    listener(Progress(step.name))
    begin = time.monotonic()
    step.run(abandoned)
    listener(Progress(step.name, time.monotonic() - begin))
