"""The open files that a search or a pattern matches."""

from __future__ import annotations

import pytest

from airflow_kstream.model.leases.lease import Search
from airflow_kstream.model.leases.open_file import OpenFile
from airflow_kstream.policy.leases.judgement import matches, path_matches

FILE = OpenFile("/data/events/part-0-6.in-progress", 16_401, "DFSClient_NONMAPREDUCE_1_30", "worker7")


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
    assert matches(FILE, search) is matching


def test_a_file_name_that_looks_like_a_pattern_matches_literally() -> None:
    assert matches(OpenFile("/data/[a].tmp"), Search(path="/data/[a].tmp"))
    assert not matches(OpenFile("/data/a.tmp"), Search(path="/data/[a].tmp"))
