"""The parts of all tables: cells that show any text safely, headings that fold, and moments in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from io import StringIO

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.printable import printable

NOT_KNOWN = "not known"
_LOG_WIDTH = 200


def table(*headings: str, lines: bool = False) -> Table:
    """Return an empty table whose columns fold and are never cut: a path or an id is there to be copied."""
    return Table(*(Column(heading, overflow="fold") for heading in headings), show_lines=lines)


def add(rows: Table, *cells: str | Text) -> None:
    """Add a row; text becomes a cell, a `Text` is one already."""
    rows.add_row(*(words if isinstance(words, Text) else cell(words) for words in cells))


def details() -> Table:
    """Return an empty list of labels with their values."""
    return Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))


def add_details(rows: Table, pairs: Iterable[tuple[str, str]]) -> None:
    """Add each label and its words, except labels without words."""
    for label, words in pairs:
        if words:
            rows.add_row(cell(label, style="bold"), cell(words))


def cell(*lines: str, style: str = "") -> Text:
    """Return lines as one cell: nothing in them is markup, and control characters are escapes."""
    return Text("\n".join(printable(line) for line in lines), style=style)


def known(number: int | None) -> str:
    """Return a number as a cell; empty if it is unknown."""
    return "" if number is None else str(number)


def lines(table: Table) -> list[str]:
    """Return the table as text, for a log."""
    console = Console(file=StringIO(), width=_LOG_WIDTH, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def moment(when: datetime, now: datetime) -> str:
    """Return a time of day, and how far away it is."""
    return f"{when:%Y-%m-%d %H:%M:%S %Z} ({away(when, now)})"


def away(when: datetime, now: datetime) -> str:
    """Return how far away a moment is: `in 5m` or `5m ago`."""
    return f"in {format_duration(when - now)}" if when >= now else ago(now - when)


def ago(age: timedelta) -> str:
    """Return an age in words; one that clock skew makes negative is 0s."""
    return f"{format_duration(max(age, timedelta()))} ago"
