"""Progress of a minicluster's start: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from airflow_kstream.minicluster.startup import Listener, Progress

# Done by the first minicluster on a machine, for up to a minute; later ones find the results in its cache.
_ONCE = frozenset({"hadoop-jars", "kafka-jars", "httpfs-jars", "kms-jars", "hadoop-classes", "kafka-classes"})


@contextmanager
def shown(console: Console) -> Iterator[Listener]:
    """Provide a listener for `Minicluster.up` that shows progress; its output stays on the screen."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bars(*columns, console=console) as bars:
        yield _bars(bars)


def _lines(console: Console) -> Listener:
    def tell(progress: Progress) -> None:
        if progress.seconds is not None:
            console.print(f"{progress.step}: {progress.seconds:.1f} s")
        elif progress.step in _ONCE:
            console.print(f"{progress.step}: once on this machine, then kept in its cache ...")

    return tell


def _bars(bars: Bars) -> Listener:
    tasks = {}

    def tell(progress: Progress) -> None:
        if progress.seconds is None:
            tasks[progress.step] = bars.add_task(progress.step, total=1)
        else:
            bars.update(tasks[progress.step], completed=1)

    return tell
