"""The open files that a search or a pattern matches."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.leases.lease import Search, path_matches
from airflow_kstream.model.leases.open_file import FileHistory, FileState, OpenFile

FILE = OpenFile("/data/events/part-0-6.in-progress", 16_401, "DFSClient_NONMAPREDUCE_1_30", "worker7")
MORNING = datetime(2026, 7, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("/data/landing/*.tmp", False),
        ("/data/landing/*/*/*.tmp", True),
        ("/data/landing/**", True),
        ("/data/**/live/*.tmp", True),
        ("/**/x.tmp", True),
        ("*.tmp", True),
        ("/data/landing/payments/live/x.tmp/**", True),
        ("/data/landing/payments/live/x.tmp/*", False),
    ],
)
def test_a_star_in_a_pattern_ends_at_the_next_slash(pattern: str, matched: bool) -> None:
    """A pattern that allows one folder does not allow another stream's folder below it."""
    assert path_matches("/data/landing/payments/live/x.tmp", pattern) is matched


@pytest.mark.parametrize(
    ("search", "matching"),
    [
        (Search(), True),
        (Search(path="/data/events"), True),
        (Search(path=FILE.path), True),
        (Search(path="/data/event"), False),
        (Search(patterns=("*.avro.tmp", "*.in-progress")), True),
        (Search(patterns=("/data/*/part-*",)), True),
        (Search(patterns=("events/*",)), False),
        (Search(holder=FILE.holder, host="worker7"), True),
        (Search(host="worker8"), False),
    ],
)
def test_a_search_matches_path_name_holder_and_host(search: Search, matching: bool) -> None:
    assert search.admits_row(FILE) is matching


def test_a_file_name_that_looks_like_a_pattern_matches_literally() -> None:
    assert Search(path="/data/[a].tmp").admits_row(OpenFile("/data/[a].tmp"))
    assert not Search(path="/data/[a].tmp").admits_row(OpenFile("/data/a.tmp"))


def test_a_holder_that_no_listing_names_counts_once_it_is_known() -> None:
    """A walk names none; where the NameNode names none either, nobody can say that it is the one."""
    search, nameless = Search(holder=FILE.holder), OpenFile(FILE.path)
    assert search.admits_row(nameless)
    assert not search.admits_row(replace(FILE, holder="another"))
    assert search.admits_state(seen(FILE), MORNING)
    assert not search.admits_state(seen(nameless), MORNING)


@pytest.mark.parametrize(
    ("search", "matching"),
    [
        (Search(owner="streamer", min_age=timedelta(minutes=10)), True),
        (Search(owner="another"), False),
        (Search(min_age=timedelta(minutes=11)), False),
    ],
)
def test_owner_and_age_are_those_of_the_file_and_not_of_its_row(search: Search, matching: bool) -> None:
    assert search.admits_state(seen(FILE), MORNING + timedelta(minutes=10)) is matching


def seen(file: OpenFile) -> FileHistory:
    """A file that was opened in the morning."""
    state = FileState(file.path, 1, "streamer", MORNING, is_open=True, length=0, block=None)
    return FileHistory.begin(file, state, MORNING)
