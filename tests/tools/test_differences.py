"""Where two contents begin to differ."""

from __future__ import annotations

import pytest

from tests.differences import first_difference


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        (b"", b"", ""),
        (b"a line\n", b"a line\n", ""),
        (b"a line\n", b"a lime\n", "from byte 4 on: b'ne\\n' instead of b'me\\n'"),
        (b"a line\nmore", b"a line\n", "from byte 7 on: b'more' instead of b''"),
        (b"x" * 1500, b"x" * 1499 + b"y", "from byte 1,499 on: b'x' instead of b'y'"),
    ],
)
def test_contents_begin_to_differ_at_a_byte(left: bytes, right: bytes, told: str) -> None:
    assert first_difference(left, right) == told
