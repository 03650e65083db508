"""Tables that a run prints at its end. A plugin: rows may come from several workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

_PROPERTY = "row"
_WIDTH = 160
# By title.
_COLUMNS: Mapping[str, Sequence[str]] = {
    "faults": ("fault", "what was seen", "seconds to recovery", "rows", "lost", "doubled"),
    "false alarms": ("what it was", "how it looked", "what was found", "kills"),
    "predictions": ("reason", "the job", "foretold", "ended", "error, of the lifetime"),
    "lives": ("job", "max-lifetimes", "pushes", "failovers", "workers killed", "rows", "lost", "doubled"),
    "alerts": ("event", "how its cause was made", "seconds until told", "seconds until its end was told"),
}

Row = Callable[..., None]


@pytest.fixture
def row(record_property: Callable[[str, object], None]) -> Callable[[str], Row]:
    """Return, for the table of this title, the function that adds a row to it."""

    def of(title: str) -> Row:
        def add(*cells: object) -> None:
            assert len(cells) == len(_COLUMNS[title])
            record_property(_PROPERTY, json.dumps([title, *map(str, cells)]))

        return add

    return of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [
        json.loads(str(value))
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call"
        for name, value in report.user_properties
        if name == _PROPERTY
    ]
    for title, columns in _COLUMNS.items():
        if own := [cells for shown, *cells in rows if shown == title]:
            terminalreporter.section(title)
            terminalreporter.write(_drawn(columns, own))


def _drawn(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = Table(*columns)
    for cells in rows:
        table.add_row(*cells)
    text = StringIO()
    Console(file=text, width=_WIDTH).print(table)
    return text.getvalue()
