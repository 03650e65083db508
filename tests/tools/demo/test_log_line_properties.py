"""Following a file that another process is still writing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.demo.shipping.log_lines import Line, Position
from tests.tools.demo.test_log_lines import lines_after

# Newlines are frequent, so that lines are short, empty, and cut anywhere.
written = st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\xff", b"two words"]), max_size=40).map(b"".join)


@given(st.lists(written, max_size=8))
def test_every_complete_line_is_taken_once_however_the_file_grows(pieces: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path, position, taken = Path(folder) / "log", Position(), list[Line]()
        for piece in pieces:
            with path.open("ab") as stream:
                stream.write(piece)
            lines, position = lines_after(path, position)
            taken += lines
        content = b"".join(pieces)
        assert b"".join(line.content + b"\n" for line in taken) == content[: content.rfind(b"\n") + 1]
        assert all(content[line.offset :].startswith(line.content + b"\n") for line in taken)
        assert position.end == content.rfind(b"\n") + 1
