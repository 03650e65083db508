"""No test is left out of all tiers: each slow one has the marker of a part of `./kstream test --slow`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.tiers import SLOW

CHECKOUT = Path(__file__).parents[2]


def test_each_slow_test_belongs_to_a_part() -> None:
    # The first -m is Python's own.
    commands = [part.command for part in SLOW.values()]
    markers = [word for command in commands for word in _after("-m", command)[1:]]
    of_no_part = f"not ({' or '.join(markers)})"
    words = ("--collect-only", "-q", "-p", "no:cacheprovider", "-m", of_no_part, "tests/slow")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
    assert "deselected" in done.stdout


def _after(word: str, command: Sequence[str]) -> list[str]:
    return [following for each, following in pairwise(command) if each == word]
