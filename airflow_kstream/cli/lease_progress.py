"""The progress of a recovery for a person: a bar while files are closed, and a Ctrl-C that still reports."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from airflow_kstream.model.leases.lease_recovery import Recovery
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.leases.executor import Watcher

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ProgressDisplay:
    """The progress of a recovery, on standard error: a bar on a terminal, and lines in any case.

    The first Ctrl-C (or SIGTERM) stops the recovery from starting anything more; the second ends the program at once.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stop = threading.Event()
        self._signal: int | None = None
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("scanning", total=None)
        self._total = 0
        self._unsettled = 0

    @property
    def exit_code(self) -> int | None:
        """Return the exit code by which a shell names the signal that arrived, None if none did."""
        return None if self._signal is None else 128 + self._signal

    @property
    def watcher(self) -> Watcher:
        return Watcher(tell=self.tell, on=self._finished, started=self._started, stop=self._stop)

    def tell(self, line: str) -> None:
        self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def showing_progress(self) -> Iterator[ProgressDisplay]:
        before = {number: signal.signal(number, self._interrupted) for number in _SIGNALS}
        try:
            with self._bar:
                yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _started(self, files: int) -> None:
        self._total += files
        self._bar.update(self._task, description="recovering", total=self._total)

    def _finished(self, recovery: Recovery) -> None:
        self._unsettled += not recovery.outcome.settled
        failed = f", {self._unsettled} failed" if self._unsettled else ""
        self._bar.update(self._task, description=f"recovering{failed}", advance=1)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.tell("stopping after a final check of recoveries in progress; press Ctrl-C again to quit now")
