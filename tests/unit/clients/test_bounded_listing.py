"""What is kept of a listing that is too long: of each author alike, so that nobody hides another's files by his own."""

from __future__ import annotations

import random
from typing import NamedTuple

from airflow_kstream.clients.hdfs.answers import kept


class Row(NamedTuple):
    name: str
    owner: str


def rows(owner: str, count: int) -> list[Row]:
    return [Row(f"{owner}-{number:07d}", owner) for number in range(count)]


def pages(entries: list[Row], size: int = 10) -> list[list[Row]]:
    ordered = sorted(entries)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def test_a_usual_listing_is_kept_whole_and_in_its_order() -> None:
    entries = rows("ada", 700) + rows("bob", 1)
    random.Random(7).shuffle(entries)
    assert kept([entries]) == (tuple(entries), {})


def test_exactly_as_many_rows_as_are_allowed_are_kept() -> None:
    assert kept(pages(rows("ada", 200)), 200)[1] == {}
    assert kept(pages(rows("ada", 201)), 200)[1] == {"ada": 1}


def test_a_stranger_with_a_flood_of_files_hides_nobody_elses() -> None:
    """Whether his names come first or last."""
    for stranger in ("aaa-mallory", "zzz-mallory"):
        entries, cut = kept(pages([*rows("etl", 30), *rows(stranger, 600), *rows("streamer", 9)]), 200)
        owners = [entry.owner for entry in entries]
        assert (owners.count("etl"), owners.count("streamer")) == (30, 9)
        assert cut == {stranger: 600 - owners.count(stranger)}
        assert 190 < len(owners) <= 200


def test_a_stranger_with_two_accounts_hides_nobody_elses_either() -> None:
    entries, cut = kept(pages([*rows("etl", 30), *rows("mallory", 300), *rows("trudy", 300)]), 200)
    assert [entry.owner for entry in entries].count("etl") == 30
    assert set(cut) == {"mallory", "trudy"}


def test_a_whole_flood_in_one_answer_is_cut_likewise() -> None:
    """A NameNode of Hadoop 2 knows no pages."""
    assert kept([[*rows("mallory", 500), *rows("etl", 10)]], 200)[1] == {"mallory": 310}
