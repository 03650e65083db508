"""fsck's text, in which names, dots and reports stand unquoted side by side."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.simulated.open_files import HEADER, HEALTHY, REPORTS, SIZES, read

PROGRESS = ("", "..", "." * 37 + "\n" + "." * 50, "\n")

# What HDFS allows in a name, with pieces that read like fsck's own words.
PIECES = st.sampled_from([" 5 bytes, ", "3 block(s), OPENFORWRITE", "\n", ".", "is HEALTHY", " B.", "/data/", "\t"])

NAMES = st.lists(PIECES | st.text(st.characters(exclude_characters=":/", exclude_categories=["Cs"])), min_size=1)

PATHS = NAMES.map(lambda pieces: "/data/" + "".join(pieces))

ROWS = st.tuples(st.lists(st.sampled_from(PROGRESS + REPORTS), max_size=3), PATHS, st.sampled_from(SIZES))


@given(st.lists(ROWS), st.integers(1, 300))
def test_every_path_is_read_exactly_however_the_text_is_cut(
    rows: Sequence[tuple[list[str], str, str]], piece: int
) -> None:
    text = HEADER + "".join("".join(junk) + path + size for junk, path, size in rows) + HEALTHY
    assert read(text, piece) == [path for _, path, _ in rows]
