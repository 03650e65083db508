"""The demonstration's console: what happens, with the time of day and the time since the start."""

from __future__ import annotations

import time
from datetime import datetime
from threading import Lock

from rich.console import Console
from rich.table import Table

from airflow_kstream.demo.promises import Promise


class DemoConsole:
    """The output of the demonstration. Safe to use from several threads."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._lock = Lock()

    def say(self, line: str, who: str = "") -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        with self._lock:
            head = f"{datetime.now():%H:%M:%S} +{minutes:02d}:{seconds:02d}"
            self._console.print(
                f"{head}  {who + ': ' if who else ''}{line}", markup=False, highlight=False, soft_wrap=True
            )

    def show(self, *lines: str) -> None:
        """Show lines to copy, without a time."""
        with self._lock:
            for line in lines:
                self._console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)

    def conclude(self, promises: list[Promise]) -> None:
        table = Table("promise", "", "what was seen")
        for promise in promises:
            table.add_row(promise.name, "kept" if promise.kept else "BROKEN", promise.seen)
        self._console.print(table)
