"""How the fault suite counts rows and generations: a row that is lost or doubled, and an overlap, are seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.rows import Rows, listed_until


@pytest.mark.parametrize(
    ("values", "lost", "doubled"),
    [
        ([2, 0, 1], 0, 0),
        ([0, 2], 1, 0),
        ([0, 1, 1, 2], 0, 1),
        ([0, 1, 2, 7], 0, 1),
        ([1, 1, 1], 2, 2),
    ],
)
def test_rows_are_compared_with_what_the_source_produced(values: list[int], lost: int, doubled: int) -> None:
    assert Rows.counted(3, values) == Rows(3, lost, doubled)


def test_a_table_has_the_files_that_its_log_lists_up_to_a_batch(tmp_path: Path) -> None:
    """The tenth entry is compacted; a file that no entry lists was left by a writer that did not commit it."""
    for batch in range(9):
        write(tmp_path / str(batch), batch)
    write(tmp_path / "9.compact", *range(10))
    write(tmp_path / "10", 10)
    write(tmp_path / "11", 11)
    (tmp_path / ".12.crc").write_text("")
    assert listed_until(2, tmp_path) == ["part-0", "part-1", "part-2"]
    assert listed_until(10, tmp_path) == [f"part-{number}" for number in range(11)]


def write(entry: Path, *numbers: int) -> None:
    lines = [{"path": f"hdfs://c/table/part-{number}", "action": "add"} for number in numbers]
    entry.write_text("\n".join(["v1", *map(json.dumps, lines)]))
