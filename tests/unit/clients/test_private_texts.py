"""Texts that a worker keeps for itself: in a folder of its own, and through no link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_kstream.clients.local.private import forget_text, keep_text, kept_text
from airflow_kstream.model.errors import InvalidInput

MOST = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def test_what_is_kept_is_read_again_and_replaced(folder: Path) -> None:
    assert kept_text(folder, "a", MOST) is None
    keep_text(folder, "a", "old")
    keep_text(folder, "a", "new")
    assert kept_text(folder, "a", MOST) == "new"
    assert [file.name for file in folder.iterdir()] == ["a"]
    assert (folder.stat().st_mode & 0o777, (folder / "a").stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_is_forgotten_is_gone_and_forgetting_nothing_is_no_error(folder: Path) -> None:
    forget_text(folder, "a")
    keep_text(folder, "a", "x")
    forget_text(folder, "a")
    forget_text(folder, "a")
    assert kept_text(folder, "a", MOST) is None


@pytest.mark.parametrize("mode", [0o750, 0o707, 0o777])
def test_a_folder_that_others_may_enter_is_not_used(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PermissionError, match="not this user's alone"):
        keep_text(folder, "a", "x")
    assert [*folder.iterdir()] == []
    with pytest.raises(PermissionError):
        kept_text(folder, "a", MOST)


def test_a_link_in_the_folders_place_is_not_followed(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(0o700)
    folder.symlink_to(target)
    with pytest.raises(PermissionError, match="not this user's alone"):
        keep_text(folder, "a", "x")
    with pytest.raises(PermissionError, match="not this user's alone"):
        forget_text(folder, "a")
    assert [*target.iterdir()] == []


def test_a_pipe_does_not_block_and_is_no_text(folder: Path) -> None:
    keep_text(folder, "b", "x")
    os.mkfifo(folder / "a")
    with pytest.raises(InvalidInput):
        kept_text(folder, "a", MOST)


def test_a_text_that_is_too_long_is_not_read(folder: Path) -> None:
    keep_text(folder, "a", "x" * (MOST + 1))
    with pytest.raises(InvalidInput):
        kept_text(folder, "a", MOST)
