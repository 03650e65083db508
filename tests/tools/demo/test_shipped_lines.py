"""The complete lines of a file that another process is still writing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.demo.shipper import BLOCK_BYTES, complete_lines, lines_of
from airflow_kstream.model.errors import InvalidInput

# Newlines are frequent, so that lines are short, empty, and cut anywhere.
written = st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\xff", b"two words"]), max_size=40).map(b"".join)


@given(st.lists(written, max_size=8))
def test_every_complete_line_is_taken_once_however_the_file_grows(pieces: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path, taken, end = Path(folder) / "log", list[tuple[int, bytes]](), 0
        for piece in pieces:
            with path.open("ab") as stream:
                stream.write(piece)
            data = complete_lines(path, end)
            taken += lines_of(data, end)
            end += len(data)
        content = b"".join(pieces)
        assert b"".join(line + b"\n" for _, line in taken) == content[: content.rfind(b"\n") + 1]
        assert all(content[offset:].startswith(line + b"\n") for offset, line in taken)


def test_a_file_that_does_not_exist_yet_has_no_lines(tmp_path: Path) -> None:
    assert complete_lines(tmp_path / "namenode.log", 0) == b""


def test_a_large_file_comes_in_blocks_of_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "namenode.log"
    path.write_bytes((b"x" * 999 + b"\n") * 1000)
    assert len(complete_lines(path, 0)) == BLOCK_BYTES // 1000 * 1000


def test_a_line_longer_than_a_broker_accepts_is_refused_by_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "namenode.log"
    path.write_bytes(b"short\n" + b"x" * BLOCK_BYTES)
    assert complete_lines(path, 0) == b"short\n"
    with pytest.raises(InvalidInput, match="at byte 6: a line of more than"):
        complete_lines(path, 6)
