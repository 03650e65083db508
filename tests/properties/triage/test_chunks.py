"""Logs in chunks: whatever their lengths are, the parts of a log are its bytes, or they are refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from airflow_kstream.model.log_scan.chunks import Damaged, ReadAt, content_at
from airflow_kstream.model.log_scan.tfile import cut_files_at

_NAME = b"\0\6stderr"


def stored(value: bytes, lengths: list[int]) -> bytes:
    """Return the value in chunks of these lengths, each of which is one byte, and a last one without content."""
    chunks = b""
    coming = iter(lengths)
    while value:
        length = min(next(coming, 17), len(value))
        chunks, value = chunks + (-length).to_bytes(1, signed=True) + value[:length], value[length:]
    return chunks + b"\0"


def parts(read_at: ReadAt, end: int, size: int) -> Iterator[bytes]:
    for _, length, edges in cut_files_at(read_at, range(end), size):
        for begin, (edge, behind) in zip(range(0, length, size), pairwise(edges), strict=True):
            early = begin > 0
            content = content_at(read_at, edge, early)
            yield content.take(min(size, length - begin) + early)[early:]
            content.require(behind)


@given(st.lists(st.sampled_from([5, 5, 5, 5, 6, 30]), max_size=60), st.integers(0, 400), st.integers(1, 90))
@example([17], 400, 90)
# A leap ends at a length like the first one's, and the chunks between have others.
@example([5, 5, 5, 5, 30, 5, 5, 5, 30, 5, 5, 5, 6, 6, 5, 5, 30, 5, 5, 5], 237, 134)
def test_the_parts_of_a_log_are_its_bytes_or_refused(lengths: list[int], length: int, size: int) -> None:
    log = bytes(ord("a") + number % 26 for number in range(length))
    digits = b"%d" % length
    file = stored(_NAME + len(digits).to_bytes(2) + digits + log, lengths)
    try:
        read = list(parts(lambda at, size: file[at : at + size], len(file), size))
    except Damaged:
        event("refused")
        assert lengths
        return
    assert b"".join(read) == log
    assert len(read) == -(-length // size)


def test_a_file_that_is_longer_than_its_record_is_not_cut() -> None:
    """Else a few bytes would be cut into more parts than fit into memory."""
    digits = b"%d" % (2**63)
    file = stored(_NAME + len(digits).to_bytes(2) + digits + b"a log", [17])
    with pytest.raises(Damaged, match="9223372036854775808 bytes"):
        list(parts(lambda at, size: file[at : at + size], len(file), 1 << 20))
