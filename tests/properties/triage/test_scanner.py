"""What is found in a log depends neither on how its bytes arrive nor on how it was split over cores."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.log_scan.engines import HyperscanEngine, PlainEngine
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.log_scan.sections import LinePattern, Section, joined
from airflow_kstream.model.logs.log_line import HEAD

PATTERNS = (LinePattern("full", r"No space left", 3, 2), LinePattern("refused", r"refused|[Rr]efusing", 3, 2))
TITLE = LinePattern("title", r"^LogType:\w+")
LINES = ("26/03/01 10:00:00 INFO a: b", "No space left", "he refused", "", "\tat a.b", "LogType:stderr", "é\udcff\x00")
SCANNERS = [Scanner((*PATTERNS, TITLE), HEAD, ["title"], engine) for engine in (HyperscanEngine, PlainEngine)]

texts = st.lists(st.sampled_from(LINES), max_size=40).map(
    lambda lines: "\n".join(lines).encode(errors="surrogateescape")
)


def without_opening(sections: list[Section]) -> list[dict[str, object]]:
    return [{**section.to_plain(), "opening": ""} for section in sections if section.size]


@given(texts, st.lists(st.integers(0, 400), max_size=5), st.sampled_from(SCANNERS))
def test_the_cuts_between_blocks_do_not_matter(text: bytes, cuts: list[int], scanner: Scanner) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    blocks = [text[begin:end] for begin, end in pairwise(edges)]
    assert without_opening(scanner.scan(blocks)) == without_opening(scanner.scan([text]))


@given(texts)
def test_both_engines_find_the_same(text: bytes) -> None:
    first, second = (scanner.scan([text]) for scanner in SCANNERS)
    assert [section.to_plain() for section in first] == [section.to_plain() for section in second]


@given(texts, st.integers(0, 41))
def test_parts_that_were_scanned_apart_join_to_the_whole(text: bytes, at: int) -> None:
    scanner, lines = SCANNERS[0], text.splitlines(keepends=True)
    parts = [scanner.scan([b"".join(lines[:at])]), scanner.scan([b"".join(lines[at:])])]
    whole = joined(parts, {pattern.name: pattern for pattern in scanner.patterns})
    assert without_opening(whole) == without_opening(scanner.scan([text]))


@given(texts)
def test_sections_survive_their_way_from_the_cluster(text: bytes) -> None:
    sections = SCANNERS[0].scan([text])
    assert [Section.of_plain(section.to_plain()) for section in sections] == sections
