"""Markers by folder: `-m unit`, `-m cluster`, `-m airflow` and the like select what lies in a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import FOLDERS, TESTS, other_folder, pytest_collection_modifyitems


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> pytest.Item:
    """This very test, as pytest collected it."""
    item = request.node
    assert isinstance(item, pytest.Item)
    return item


def marks_of(path: Path, item: pytest.Item) -> set[str]:
    """Return the markers that a test gets when it is collected from `path`."""
    moved = pytest.Function.from_parent(item.parent, name="moved", callobj=lambda: None)
    moved.path = path
    pytest_collection_modifyitems([moved])
    return {mark.name for mark in moved.own_markers}


def test_a_collected_test_has_the_marker_of_its_folder(collected: pytest.Item) -> None:
    assert {mark.name for mark in collected.iter_markers()} & set(FOLDERS) == {"unit"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_test_below_a_folder_gets_that_marker_alone(collected: pytest.Item, folder: str) -> None:
    assert marks_of(TESTS / folder / "streams" / "test_x.py", collected) == {folder}


def test_a_test_outside_of_the_folders_gets_no_marker(collected: pytest.Item) -> None:
    assert marks_of(TESTS / "test_outside.py", collected) == set()


def test_properties_take_longest_and_go_before_units(collected: pytest.Item) -> None:
    def of(file: str) -> pytest.Item:
        item: pytest.Item = pytest.Function.from_parent(collected.parent, name="moved", callobj=lambda: None)
        item.path = TESTS / file
        return item

    items = [of(f"{folder}/test_x.py") for folder in ("unit", "properties", "loopback", "cluster")]
    pytest_collection_modifyitems(items)
    assert [item.path.parent.name for item in items] == ["cluster", "properties", "loopback", "unit"]


def test_no_unit_draws_values_or_serves() -> None:
    """Units are the inner loop: what takes longer lies in another folder."""
    longer = re.compile(r"^@given\b|^from tests\.loopback\b|HTTPServer\(", re.MULTILINE)
    assert [path for path in (TESTS / "unit").rglob("*.py") if longer.search(path.read_text())] == []


def test_every_marker_of_a_folder_is_declared(pytestconfig: pytest.Config) -> None:
    declared = {line.split(":")[0] for line in pytestconfig.getini("markers")}
    assert set(FOLDERS) <= declared


def test_every_folder_with_tests_has_a_marker() -> None:
    assert {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")} == set(FOLDERS)


@pytest.mark.parametrize(
    ("path", "selected", "left_out"),
    [
        ("cluster", "unit", True),
        ("cluster/test_hdfs.py", "unit", True),
        ("unit", "unit", False),
        ("properties", "unit", True),
        ("loopback/streams/test_stop.py", "unit", True),
        ("unit/streams/test_horizon.py", "unit", False),
        ("secrets", "unit", False),
        ("test_outside.py", "unit", False),
        ("", "unit", False),
        ("../benchmarks", "unit", False),
        ("cluster", "", False),
        ("cluster", "not unit", False),
        ("cluster", "simulation", True),
        ("cluster", "faults", False),
    ],
)
def test_a_folder_is_left_out_when_the_marker_of_another_is_selected(path: str, selected: str, left_out: bool) -> None:
    assert other_folder(TESTS / path, selected) is left_out


def test_only_faults_are_marked_in_other_folders() -> None:
    """A marker of a folder selects that folder alone: see `other_folder`."""
    marked = re.compile(rf"mark\.({'|'.join(FOLDERS)})\b")
    assert {found for path in TESTS.rglob("*.py") for found in marked.findall(path.read_text())} == {"faults"}
