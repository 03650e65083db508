"""What the threads of a Spark driver or executor are doing at one moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_kstream.model.logs.container_log import LoggedContainer

DRIVER = "driver"
# `java.base@17.0.15/java.lang.Object.wait(Native Method)`, `app//org.apache.spark...`, and locks on lines of their own.
_MODULE = re.compile(r"^[\w.@+-]*/{1,2}(?=[\w$.]+\()")


@dataclass(frozen=True)
class SparkProcess:
    """The driver, or an executor by its number. `tasks` is how many it runs now; None for the driver."""

    id: str
    host: str
    tasks: int | None = None
    container: LoggedContainer | None = None

    def __str__(self) -> str:
        name = self.id if self.id == DRIVER else f"executor {self.id}"
        return f"{name} on {self.host}"


@dataclass(frozen=True)
class Thread:
    """A thread by its name, its state in Java's words, and its frames, the innermost first."""

    name: str
    state: str
    frames: tuple[str, ...]


@dataclass(frozen=True)
class ThreadDump:
    process: SparkProcess
    threads: tuple[Thread, ...]

    def lines(self) -> Iterator[str]:
        """Yield it as a person reads it: as jstack prints."""
        yield f"# {self.process}"
        for thread in self.threads:
            yield f'"{thread.name}" {thread.state}'
            yield from (f"\tat {frame}" for frame in thread.frames)
            yield ""


def plain_frame(frame: str) -> str:
    """Return a frame without its module and without the addresses of the locks that it holds or waits for."""
    return _MODULE.sub("", frame.partition("\n")[0].strip())
