"""The rows of the table that a run of the fault suite prints at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.faults.rows import Rows
from tests.tables import Row

# The fault, what was seen, the seconds from its end, or its moment, to the next new commit, and the stream's rows.
Tell = Callable[[str, str, float, Rows], None]


@pytest.fixture
def tell(row: Callable[[str], Row]) -> Tell:
    """Return the function that puts a line into the table."""
    add = row("faults")

    def told(fault: str, seen: str, recovery: float, rows: Rows) -> None:
        add(fault, seen, f"{recovery:.1f}", rows.produced, rows.lost, rows.doubled)

    return told
