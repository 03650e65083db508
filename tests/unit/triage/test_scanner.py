"""The scanner: what is kept of millions of lines, with their numbers and the beginnings of their records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from airflow_kstream.model.log_scan.engines import HyperscanEngine, PlainEngine, RegexEngine, plain_words
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.log_scan.sections import LinePattern, Section
from airflow_kstream.model.logs.log_line import HEAD

FULL = LinePattern("full", r"No space left", first=2, last=2)
TITLE = LinePattern("title", r"^LogType: ?\w+")
BEGINNING = "26/03/01 10:00:00 ERROR Sink: failed"
TRACE = "java.io.IOException: No space left on device"

engines = pytest.mark.parametrize("engine", [HyperscanEngine, PlainEngine])


def scanned(text: str, engine: Callable[[Sequence[str]], RegexEngine], *more: LinePattern) -> list[Section]:
    return Scanner((FULL, TITLE, *more), HEAD, ["title"], engine).scan([text.encode()])


@engines
def test_a_hit_has_its_line_and_the_beginning_of_its_record(engine: type[PlainEngine]) -> None:
    (section,) = scanned(f"x\n{BEGINNING}\n\tat a.b(C.java:1)\nCaused by: {TRACE}\n", engine)
    (hit,) = section.found["full"].kept
    assert (hit.number, hit.line, hit.head_number, hit.head) == (4, f"Caused by: {TRACE}", 2, BEGINNING)
    assert (section.lines, section.head, section.tail) == (4, BEGINNING, BEGINNING)


@engines
def test_a_tracebacks_text_is_its_last_line(engine: type[PlainEngine]) -> None:
    python = LinePattern("python", r"^Traceback \(most", closing=r"[^ \t]")
    trace = "Traceback (most recent call last):\n  File x\n    y()\n"
    (section,) = scanned(f"{BEGINNING}\n{trace}a.Closed: 17\nz\n{trace}{BEGINNING}\n{trace}", engine, python)
    hits = section.found["python"].kept
    assert [hit.line for hit in hits] == ["a.Closed: 17", *[trace.splitlines()[0]] * 2]
    assert [(hit.number, hit.head_number) for hit in hits] == [(2, 1), (7, 1), (11, 10)]


@engines
def test_of_ten_thousand_hits_the_first_and_the_last_are_kept(engine: type[PlainEngine]) -> None:
    (section,) = scanned(f"{TRACE} No space left\n" * 10_000, engine)
    found = section.found["full"]
    assert found.count == 10_000
    assert [hit.number for hit in found.kept] == [1, 2, 9_999, 10_000]


@engines
def test_a_title_begins_a_section_with_lines_counted_from_the_files_first(engine: type[PlainEngine]) -> None:
    first, second = scanned(f"{BEGINNING}\n{TRACE}\nLogType:stderr\n{TRACE}\n", engine)
    assert (first.title, first.lines, second.title, second.at_line) == ("", 2, "LogType:stderr", 3)
    (hit,) = second.found["full"].kept
    # The record of another section is not its own.
    assert (hit.number, hit.head) == (4, "")


@engines
def test_bytes_that_are_no_text_and_a_line_without_an_end_are_read(engine: type[PlainEngine]) -> None:
    blocks = [b"\xff\xfe\x00", b"\n" + BEGINNING.encode(), b"\n\xe2No space left"]
    (section,) = Scanner((FULL,), HEAD, engine=engine).scan(blocks)
    (hit,) = section.found["full"].kept
    assert (hit.number, hit.line, hit.head_number) == (3, "\N{REPLACEMENT CHARACTER}No space left", 2)


@engines
def test_a_log_that_was_copied_from_a_web_page_is_read(engine: type[PlainEngine]) -> None:
    (section,) = scanned("No\N{NO-BREAK SPACE}space\N{NO-BREAK SPACE}left on device", engine)
    assert section.found["full"].first[0].line == "No space left on device"


@engines
def test_the_kept_text_of_an_endless_line_is_bounded(engine: type[PlainEngine]) -> None:
    (section,) = scanned(f"No space left {'x' * 10_000_000}", engine)
    assert len(section.found["full"].first[0].line) == 2000
    (section,) = scanned(f"{'x' * 10_000_000} No space left {'y' * 5000}", engine)
    assert "No space left" in section.found["full"].first[0].line


@engines
@pytest.mark.parametrize("blanks", [0, 1])
def test_a_long_line_is_cut_where_a_word_begins_and_shows_no_half_of_a_password(
    engine: type[PlainEngine], blanks: int
) -> None:
    text = f"{'x' * 5000} -Dpassword={'hunter2' * 20}{' ' * blanks}{'.' * 100}No space left"
    (section,) = scanned(text, engine)
    assert section.found["full"].first[0].line == f"{'.' * 100 * blanks}No space left"


def test_a_line_that_matches_at_each_of_its_words_costs_no_more_than_its_length() -> None:
    text = "No space left " * 100_000
    began = time.process_time()
    (section,) = scanned(text, HyperscanEngine)
    assert time.process_time() - began < 1
    assert section.found["full"].count == 1


def test_a_record_of_many_lines_is_walked_over_once_whatever_is_found_in_it() -> None:
    many = [LinePattern(f"{number}", rf"left on device|never{number}") for number in range(100)]
    text = f"{BEGINNING}\n" + "\n" * 200_000 + f"{TRACE}\n" * 4
    began = time.process_time()
    (section,) = scanned(text, HyperscanEngine, *many)
    assert time.process_time() - began < 1.5
    assert {hit.head for hit in section.found["99"].kept} == {BEGINNING}


def test_a_job_that_prints_titles_without_end_does_not_take_the_memory() -> None:
    scanner = Scanner((TITLE,), HEAD, ["title"], most_sections=3)
    sections = scanner.scan([b"LogType:stderr\n" * 10])
    assert [section.lines for section in sections] == [0, 1, 9]


def test_a_match_that_reaches_beyond_its_line_counts_for_neither() -> None:
    """An operator's class that excludes characters may match a line's end in Hyperscan."""
    across = LinePattern("across", r"left [^x]{1,20}device")
    (section,) = scanned("No space left on\na device\n", HyperscanEngine, across)
    assert not section.found["across"].kept


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        (r"Invalid AMRMToken", ("Invalid AMRMToken",)),
        (r"exit(?:Code| code): -10[34]\b|Killed by YARN", (": -10", "Killed by YARN")),
        (r"abc+defgh?ijklm\.no", ("ijklm.no",)),
        (r"\[TOKEN, KERB{1,2}EROS\]", ("[TOKEN, KERB",)),
    ],
)
def test_each_match_of_a_regex_has_its_plain_words(regex: str, words: tuple[str, ...]) -> None:
    assert plain_words(regex) == words


@pytest.mark.parametrize("regex", [r"\w+", r"abc", r"(?:longer|group)", r"longer|\d+", r"lon(?:g)?er?s?"])
def test_a_regex_without_plain_words_is_refused(regex: str) -> None:
    with pytest.raises(ValueError, match="no plain text of 4 characters"):
        plain_words(regex)
