"""Following a file that another process is still writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.demo.shipping.log_lines import BLOCK_BYTES, Line, Position, next_block
from airflow_kstream.model.errors import InvalidInput


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    return tmp_path / "namenode.log"


def lines_after(path: Path, position: Position) -> tuple[list[Line], Position]:
    """Return all complete lines after `position`."""
    lines: list[Line] = []
    while block := next_block("nn1", path, position):
        lines += block.lines
        position = block.position
    return lines, position


def test_a_file_that_does_not_exist_yet_has_no_lines(growing: Path) -> None:
    assert next_block("nn1", growing, Position()) is None


def test_a_large_file_comes_in_blocks(growing: Path) -> None:
    line = b"x" * 999 + b"\n"
    growing.write_bytes(line * 1000)
    first = next_block("nn1", growing, Position())
    assert first is not None
    assert len(first.lines) == BLOCK_BYTES // 1000
    assert len(lines_after(growing, Position())[0]) == 1000


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (b"one\n", "is shorter than what was taken of it"),
        (b"another\nfile\n", "begins with other bytes than it did"),
        (None, "is gone"),
    ],
    ids=["truncated", "rotated", "removed"],
)
def test_a_file_that_is_no_longer_the_same_is_refused(growing: Path, now: bytes | None, what: str) -> None:
    growing.write_bytes(b"one\ntwo\n")
    _, position = lines_after(growing, Position())
    growing.unlink()
    if now is not None:
        growing.write_bytes(now)
    with pytest.raises(InvalidInput, match=f"files.nn1: .* {what}"):
        next_block("nn1", growing, position)


def test_a_line_longer_than_a_broker_accepts_is_refused_by_its_offset(growing: Path) -> None:
    growing.write_bytes(b"short\n" + b"x" * BLOCK_BYTES)
    first = next_block("nn1", growing, Position())
    assert first is not None
    with pytest.raises(InvalidInput, match="at byte 6: a line of more than"):
        next_block("nn1", growing, first.position)
