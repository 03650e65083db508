"""Folders and their markers: `-m unit`, `-m airflow` and the like select what lies in one, and what it may import."""

from __future__ import annotations

import re

import pytest

from tests.conftest import FOLDERS, TESTS, other_folder, pytest_collection_modifyitems

PURE = ("unit", "properties", "simulation")
# Folders without tests, which all others may import.
HELPERS = ("simulated", "live", "secrets", "mutants")


def moved(request: pytest.FixtureRequest, *files: str) -> list[pytest.Item]:
    """Return tests as pytest collected them from these files."""
    items: list[pytest.Item] = []
    for file in files:
        item: pytest.Item = pytest.Function.from_parent(request.node.parent, name="moved", callobj=lambda: None)
        item.path = TESTS / file
        items.append(item)
    pytest_collection_modifyitems(items)
    return items


def test_a_test_below_a_folder_gets_that_marker_alone(request: pytest.FixtureRequest) -> None:
    assert {mark.name for mark in request.node.iter_markers()} & set(FOLDERS) == {"unit"}
    items = moved(request, *(f"{folder}/streams/test_x.py" for folder in FOLDERS), "test_outside.py")
    assert [{mark.name for mark in item.own_markers} for item in items] == [*({folder} for folder in FOLDERS), set()]


def test_the_folders_are_collected_in_the_order_of_their_longest_modules(request: pytest.FixtureRequest) -> None:
    items = moved(request, *(f"{folder}/test_x.py" for folder in sorted(FOLDERS)))
    assert [item.path.parent.name for item in items] == list(FOLDERS)


def test_every_folder_with_tests_has_a_declared_marker(pytestconfig: pytest.Config) -> None:
    declared = {line.split(":")[0] for line in pytestconfig.getini("markers")}
    assert {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")} == set(FOLDERS)
    assert set(FOLDERS) <= declared


# The path below tests, the marker that is selected, and whether the path is left out.
LEFT_OUT = (
    ("airflow", "unit", True),
    ("contract/test_fsck.py", "unit", True),
    ("unit", "unit", False),
    ("unit/streams/test_horizon.py", "unit", False),
    ("loopback/streams/test_stop.py", "unit", True),
    ("secrets", "unit", False),
    ("test_outside.py", "unit", False),
    ("", "unit", False),
    ("../benchmarks", "unit", False),
    ("airflow", "", False),
    ("airflow", "not unit", False),
    ("airflow", "simulation", True),
    # A marker that tests of several folders have.
    ("slow", "faults", False),
)


def test_a_folder_is_left_out_when_the_marker_of_another_is_selected() -> None:
    assert [row for row in LEFT_OUT if other_folder(TESTS / row[0], row[1]) is not row[2]] == []


def test_no_test_carries_the_marker_of_a_folder_in_another_one() -> None:
    """A marker of a folder selects that folder alone: see `other_folder`."""
    marked = re.compile(rf"mark\.({'|'.join(FOLDERS)})\b")
    assert [str(path) for path in TESTS.rglob("*.py") if marked.search(path.read_text())] == []


def test_no_unit_draws_values_serves_or_starts_programs() -> None:
    """Units are the inner loop: what takes longer lies in another folder."""
    longer = re.compile(r"^(?:@given\b|(?:import|from) (?:airflow|subprocess|http\.server)\b)", re.MULTILINE)
    assert [str(path) for path in (TESTS / "unit").rglob("*.py") if longer.search(path.read_text())] == []


# A module of tests that is imported, by its folder; and what is imported from `tests` itself.
IMPORTED = re.compile(r"^\s*(?:from|import) tests\.(\w+)|^\s*from tests import (\w+)", re.MULTILINE)


def test_no_folder_imports_another_ones_tests() -> None:
    """What several share lies in `simulated`, `live` or beside the folders; and what is pure needs nothing live."""
    foreign = [
        f"{path.relative_to(TESTS)} imports from {name}"
        for folder in FOLDERS
        for path in (TESTS / folder).rglob("*.py")
        for name in sorted({first or second for first, second in IMPORTED.findall(path.read_text())})
        if ((TESTS / name).is_dir() and name not in (folder, *HELPERS)) or (name == "live" and folder in PURE)
    ]
    assert foreign == []
