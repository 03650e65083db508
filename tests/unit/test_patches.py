"""Tests use real parts. A patch says right above it why there is none, and there are never more of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# A variable of the environment is a real part.
PATCH = re.compile(r"\.set(?:attr|item)\(|\bpatch\.object\(|\bpatch\(|\bmock\.patch(?!\.dict\(os\.environ)|Mock\(")
# Lower it with each one that goes; it has no other direction.
LEFT = 46


def patches() -> Iterator[tuple[str, bool]]:
    """Yield where each patch is, and whether it has a reason."""
    for file in sorted({*TESTS.rglob("*.py")} - {Path(__file__)}):
        above = ""
        reasoned = False
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if PATCH.search(line):
                # Of several in consecutive lines, the first one's reason is for all.
                reasoned = above.startswith("#") or (reasoned and bool(PATCH.search(above)))
                yield f"{file.relative_to(TESTS)}:{number}", reasoned
            above = line.strip()


def test_each_patch_has_its_reason_right_above_it() -> None:
    assert [where for where, reasoned in patches() if not reasoned] == []


def test_the_number_of_patches_only_falls() -> None:
    """Pass a value or a simulated server instead: tests/simulated has them, and what fails there is told to it."""
    assert len([*patches()]) <= LEFT


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ('monkeypatch.setattr(time, "sleep", clock.sleep)', True),
        ('stack.enter_context(patch.object(os, "killpg", killed))', True),
        ('with patch("airflow_kstream.clients.spark.subprocess", module):', True),
        ("server = MagicMock()", True),
        ('monkeypatch.setenv("TZ", "Asia/Tokyo")', False),
        ("with mock.patch.dict(os.environ, KRB5_CONFIG=conf):", False),
        ("def dispatch(self) -> None:", False),
    ],
)
def test_a_patch_is_known_by_its_words(line: str, is_one: bool) -> None:
    assert bool(PATCH.search(line)) is is_one
