"""fsck's text, in which names, dots and reports stand unquoted side by side."""

from __future__ import annotations

import tracemalloc

import pytest

from airflow_kstream.clients.hdfs.fsck import FsckReader, Standby
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from tests.simulated.open_files import ENDED, HEADER, HEALTHY, REPORTS, SIZES, read


def test_a_tree_without_open_files_yields_nothing() -> None:
    assert read(f"{HEADER}....{HEALTHY}") == []
    assert read(f"{HEADER}....{HEALTHY.replace('HEALTHY', 'CORRUPT')}") == []


@pytest.mark.parametrize(
    ("end", "kind", "words"),
    [
        (f"{HEADER}{ENDED}Permission denied: user=etl, access=EXECUTE\n\n\nFsck on path '/data' FAILED", Denied, "etl"),
        (f"{HEADER}{ENDED}Operation category READ is not supported in state standby. Visit x\n\n\nFsck on path '/data' "
         "FAILED", Standby, "active"),
        (f"{HEADER}{ENDED}fsck encountered internal errors!\n\n\nFsck on path '/data' FAILED", Unavailable, "internal"),
        (f"{HEADER}\n\nPath '/data' does not exist", NotFound, "does not exist"),
        (HEADER + "." * 80, Unavailable, "ended before fsck did"),
        ("", Unavailable, "ended before fsck did"),
    ],
)  # fmt: skip
def test_a_broken_end_is_an_error_after_the_files_found(end: str, kind: type[KstreamError], words: str) -> None:
    reader = FsckReader()
    paths = list(reader.feed(f"{HEADER}/data/open{SIZES[0]}{end.removeprefix(HEADER)}"))
    assert paths == ["/data/open"]
    with pytest.raises(kind, match=words) as caught:
        reader.finish()
    assert type(caught.value) is kind


def test_a_row_of_another_form_is_refused_and_not_skipped() -> None:
    with pytest.raises(Unavailable, match="unknown format"):
        read(f"{HEADER}/data/open 5 Bytes, OPENFORWRITE: {HEALTHY}")
    with pytest.raises(Unavailable, match="unknown format"):
        read(f"{HEADER}/data/x: whatever this is /data/open{SIZES[0]}{HEALTHY}")


@pytest.mark.parametrize("line", ["." * 100 + "\n", REPORTS[3]])
def test_a_big_tree_is_read_in_little_memory(line: str) -> None:
    """Only the end of 100 MB of output is kept in memory, and an open file after it is found."""
    reader, part = FsckReader(), line * (1_000_000 // len(line))
    tracemalloc.start()
    try:
        assert not [path for _ in range(100) for path in reader.feed(part)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    assert list(reader.feed(f"/data/open{SIZES[0]}")) == ["/data/open"]
