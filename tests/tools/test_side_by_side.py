"""Which worker takes which tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.side_by_side import APART, LONGEST, TOGETHER, WAITING, next_scope, scope_of

LONG, LONGER = "tests/real/cluster/test_stream_life.py", "tests/real/airflow/"
LIVE, LEASES = "tests/real/cluster/test_freeze.py", "tests/real/cluster/test_rescue.py"


def test_what_waits_runs_beside_what_computes() -> None:
    assert next_scope("gw0", [LIVE, LEASES]) == LIVE
    assert next_scope("gw1", [LIVE, LEASES]) == LEASES


def test_what_takes_longest_comes_first() -> None:
    assert next_scope("gw0", [LIVE, LONG]) == next_scope("gw1", [LIVE, LONG]) == LONG
    assert next_scope("gw0", [LIVE, LONG, LONGER]) == LONGER


def test_a_worker_whose_kind_of_tests_is_done_helps_the_others() -> None:
    assert next_scope("gw0", [LEASES]) == LEASES
    assert next_scope("gw1", [LIVE]) == LIVE
    assert next_scope("gw1", []) is None


def test_what_shares_a_server_stays_together() -> None:
    assert scope_of(f"{LIVE}::test_one") == scope_of(f"{LIVE}::test_another") == LIVE
    assert scope_of("tests/spark/test_one.py::test_it") == scope_of("tests/spark/test_another.py::test_it")
    assert scope_of(f"{LIVE}::test_one") != scope_of(f"{LONG}::test_one")


@pytest.mark.parametrize("file", ["tests/simulation/test_histories.py", "tests/slow/predictions/test_predictions.py"])
def test_long_tests_that_share_none_spread_over_all_workers(file: str) -> None:
    assert scope_of(f"{file}::test_one") != scope_of(f"{file}::test_another")


@pytest.mark.parametrize("path", sorted({*TOGETHER, *APART, *WAITING, *LONGEST}))
def test_what_is_named_is_there(path: str) -> None:
    """A renamed file would lose its place without a word."""
    assert any(Path(__file__).parents[2].glob(f"{path.removesuffix('/')}*"))
