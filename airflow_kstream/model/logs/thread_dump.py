"""What the threads of an application's processes are doing, at one moment and over several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.container_log import LoggedContainer

# `java.base@17.0.15/java.lang.Object.wait(Native Method)`, `app//org.apache.spark...`, and locks on lines of their own.
_MODULE = re.compile(r"^[\w.@+-]*/{1,2}(?=[\w$.]+\()")


@dataclass(frozen=True)
class Process:
    """A process of an application, by its engine's name for it: `driver`, `executor 3`.

    `tasks` is how many it runs now; None for the one that leads the others.
    """

    name: str
    host: str
    tasks: int | None = None
    container: LoggedContainer | None = None

    def __str__(self) -> str:
        return f"{self.name} on {self.host}"


@dataclass(frozen=True)
class Thread:
    """A thread by its name, its state in Java's words, and its frames, the innermost first."""

    name: str
    state: str
    frames: tuple[str, ...]


@dataclass(frozen=True)
class ThreadDump:
    process: Process
    threads: tuple[Thread, ...]

    def lines(self) -> Iterator[str]:
        """Yield it as a person reads it: as jstack prints."""
        yield f"# {self.process}"
        for thread in self.threads:
            yield f'"{thread.name}" {thread.state}'
            yield from (f"\tat {frame}" for frame in thread.frames)
            yield ""


@dataclass(frozen=True)
class DumpRound:
    """Thread dumps of the processes that work, taken at one moment.

    `counts` is what the engine counted then, as text that is another one once anything has moved. `missing` are the
    errors of processes that could not be dumped.
    """

    dumps: tuple[ThreadDump, ...]
    counts: str = ""
    missing: tuple[KstreamError, ...] = ()


@dataclass(frozen=True)
class Hanging:
    """A thread of the job's work that stood at one place in all rounds: `what` it works on, and `where` it stands."""

    process: Process
    what: str
    thread: Thread
    where: str

    def __str__(self) -> str:
        return f"{self.process}, {self.what}: {self.where}"


@dataclass(frozen=True)
class Stillness:
    """All that stood still, and of it what shows that the batch itself does, and waits for nothing that moves."""

    hanging: tuple[Hanging, ...] = ()
    stuck: tuple[Hanging, ...] = ()


def plain_frame(frame: str) -> str:
    """Return a frame without its module and without the addresses of the locks that it holds or waits for."""
    return _MODULE.sub("", frame.partition("\n")[0].strip())
