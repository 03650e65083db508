"""The ends of containers' logs: from NodeManagers, their log server, and HDFS; bounded, masked, and clear when lost."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.logs.container_log import aggregated_tails, tail_on_page
from tests.simulated.yarn_logs import FILES, ID


@given(st.binary(max_size=400))
@example(b"End of LogType:")
@example(b"End of LogType:stdout.\n" + b"*" * 20)
def test_any_page_is_refused_or_shows_no_more_than_it_has(content: bytes) -> None:
    for page in (content, b"LogLength:9\nLogContents:\n" + content):
        with suppress(InvalidInput):
            tail = tail_on_page(page, "stdout")
            assert tail is None or len(tail.text) <= len(page)


@given(st.integers(0, 895), st.integers(0, 255), st.integers(0, 896))
# The first byte of the place of the index.
@example(895 - 27, 255, 896)
@example(895 - 27, 127, 896)
def test_a_damaged_file_is_read_or_refused_and_costs_little(at: int, byte: int, length: int) -> None:
    content = bytearray((FILES / "plain.tfile").read_bytes())
    content[at] = byte
    for whole in (bytes(content), bytes(content[:length])):
        reads = 0

        def read_at(offset: int, size: int, whole: bytes = whole) -> bytes:
            nonlocal reads
            reads += 1
            assert size <= 5 << 20
            assert 0 <= offset < 2**62
            return whole[offset : offset + size]

        with suppress(InvalidInput):
            aggregated_tails(read_at, len(whole), ID.replace("01_000001", "01_000003"), ("stdout",), 100)
        assert reads < 100
