"""Spellings of one path are equal, and only a folder's contents are below it."""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.hdfs_path import as_word, checked_path, plain_path
from airflow_kstream.model.errors import InvalidInput


@pytest.mark.parametrize("word", ["", "a/b", "s3://bucket/a", "file:///a", "/half\ud800"])
def test_what_is_no_path_of_hdfs_is_refused(word: str) -> None:
    with pytest.raises(InvalidInput):
        checked_path(word)


def test_a_question_mark_and_a_hash_belong_to_the_path() -> None:
    assert plain_path("hdfs://kstream/a?b#c") == "/a?b#c"


def test_a_name_that_is_no_unicode_is_a_path() -> None:
    assert checked_path("/\udcff") == "/\udcff"


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/kstream/orders.etl", "/kstream/orders.etl"),
        ("/kstream/*", r"'/kstream/\*'"),
        ("/kstream/{a,b}[c]?", r"'/kstream/\{a,b\}\[c\]\?'"),
        ("/kstream/a\\b", r"'/kstream/a\\b'"),
        ("/kstream/a; rm $(b)", "'/kstream/a; rm $(b)'"),
    ],
)
def test_a_word_of_a_command_is_one_path_for_the_shell_and_for_hadoop(path: str, word: str) -> None:
    assert as_word(path) == word
