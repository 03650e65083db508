"""Spellings of one path are equal, and only a folder's contents are below it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.clusters.hdfs_path import checked_path, is_below, path_in, plain_path
from airflow_kstream.model.errors import InvalidInput

NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)

PATHS = st.lists(NAMES).map(lambda names: "/" + "/".join(names))

SLASHES = st.integers(1, 3).map(lambda count: "/" * count)


@given(st.lists(st.tuples(SLASHES, NAMES)), st.sampled_from(["", "hdfs://", "hdfs://kstream", "hdfs://a.test:8020"]))
def test_every_spelling_of_a_path_is_one_path(parts: list[tuple[str, str]], filesystem: str) -> None:
    spelled = filesystem + "".join(slashes + name for slashes, name in parts)
    plain = "/" + "/".join(name for _, name in parts)
    for end in ("", "/", "//") if spelled else ("/",):
        assert (plain_path(spelled + end), path_in(spelled + end)) == (plain, plain)


@given(PATHS)
def test_a_plain_path_stays_as_it_is(path: str) -> None:
    assert plain_path(path) == checked_path(path) == path


@given(PATHS, st.lists(NAMES, min_size=1), NAMES)
def test_below_a_folder_is_what_lies_in_it_and_not_its_namesakes(root: str, names: list[str], end: str) -> None:
    inside = plain_path(f"{root}/{'/'.join(names)}")
    assert is_below(root, inside)
    assert is_below("/", inside)
    assert is_below(root, root)
    assert not is_below(inside, root)
    assert root == "/" or not is_below(root, root + end)


@given(st.text())
def test_any_word_is_a_path_or_none_and_is_refused_in_one_way(word: str) -> None:
    found = path_in(word)
    assert (found is None) == (not word.startswith(("/", "hdfs://")))
    assert found is None or found.startswith("/")
    try:
        assert checked_path(word) == found
    except InvalidInput:
        assert not word.startswith("/") or not word.isprintable()
