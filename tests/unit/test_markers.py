"""Markers by folder: `-m unit`, `-m cluster`, `-m airflow` and the like select what lies in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import FOLDERS, TESTS, pytest_collection_modifyitems


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


def test_every_marker_of_a_folder_is_declared(pytestconfig: pytest.Config) -> None:
    declared = {line.split(":")[0] for line in pytestconfig.getini("markers")}
    assert set(FOLDERS) <= declared


def test_every_folder_with_tests_has_a_marker() -> None:
    assert {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")} == set(FOLDERS)
