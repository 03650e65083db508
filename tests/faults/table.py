"""The table that a run of the fault suite prints at its end. A plugin: results may come from several workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from tests.faults.rows import Rows

_PROPERTY = "fault"
_WIDTH = 160


@dataclass(frozen=True)
class Fault:
    """What one fault did. `recovery` is in seconds, from the fault's end, or its moment, to the next new commit."""

    fault: str
    seen: str
    recovery: float
    rows: int
    lost: int
    doubled: int


Tell = Callable[[str, str, float, Rows], None]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Return the function that puts a line into the table."""

    def told(fault: str, seen: str, recovery: float, rows: Rows) -> None:
        line = Fault(fault, seen, round(recovery, 1), rows.produced, rows.lost, rows.doubled)
        record_property(_PROPERTY, json.dumps(asdict(line)))

    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    faults = list(_faults(terminalreporter))
    if faults:
        text = StringIO()
        Console(file=text, width=_WIDTH).print(_table(faults))
        terminalreporter.section("faults")
        terminalreporter.write(text.getvalue())


def _faults(reporter: pytest.TerminalReporter) -> Iterator[Fault]:
    for outcome in ("passed", "failed"):
        for report in reporter.getreports(outcome):
            lines = [value for name, value in report.user_properties if name == _PROPERTY]
            if report.when == "call":
                yield from (Fault(**json.loads(str(line))) for line in lines)


def _table(faults: list[Fault]) -> Table:
    table = Table("fault", "what was seen", "seconds to recovery", "rows", "lost", "doubled")
    for fault in faults:
        table.add_row(*(str(value) for value in asdict(fault).values()))
    return table
