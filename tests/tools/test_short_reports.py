"""A run on several workers reports every failure and every number, although most reports stay on the workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
TESTS = """
import time
import pytest

@pytest.fixture
def broken(): raise OSError("no disk")

@pytest.fixture
def leaking():
    yield
    raise OSError("a server is left")

@pytest.fixture
def slow(): time.sleep(0.15)

def test_works(): pass
def test_is_slow_to_set_up(slow): pass
def test_has_no_ground(broken): pass
def test_leaves_something(leaking): pass
def test_is_wrong(): assert 1 == 2
@pytest.mark.skip(reason="says why")
def test_is_left_out(): pass
"""


def test_failures_skips_and_slow_fixtures_reach_the_controller(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_them.py").write_text(TESTS)
    words = ("-n", "2", "-p", "tests.short_reports", "-rA", "--durations", "0", "-vv", "-p", "no:cacheprovider")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**environment, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout
    assert done.returncode == 1, told + done.stderr
    assert "1 failed, 3 passed, 1 skipped, 2 errors" in told
    assert "ERROR test_them.py::test_has_no_ground - OSError: no disk" in told
    assert "ERROR test_them.py::test_leaves_something - OSError: a server is left" in told
    assert "FAILED test_them.py::test_is_wrong" in told
    assert "says why" in told
    setups = {test: float(took) for took, test in re.findall(r"([\d.]+)s setup +(\S+)", told)}
    assert setups["test_them.py::test_is_slow_to_set_up"] >= 0.15
    quick = {"test_them.py::test_works", "test_them.py::test_leaves_something", "test_them.py::test_is_wrong"}
    assert not [test for test in quick & setups.keys() if setups[test] < 0.1]
