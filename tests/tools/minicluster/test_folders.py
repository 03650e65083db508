"""The folder of a minicluster: its owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.model.errors import MiniclusterError


def test_a_folder_is_made_closed_and_an_open_one_is_closed_with_a_word(tmp_path: Path) -> None:
    made, found = Folders(tmp_path / "below" / "made"), Folders(tmp_path / "found")
    found.root.mkdir()
    found.root.chmod(0o755)
    assert (made.make_private(), found.make_private()) == (False, True)
    assert {stat.S_IMODE(folders.root.stat().st_mode) for folders in (made, found)} == {0o700}
    assert found.make_private() is False


def test_another_users_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    other = 65534
    folder = tmp_path if os.getuid() == 0 else Path("/usr/lib")
    if os.getuid() == 0:
        os.chown(folder, other, other)
    before = folder.stat().st_mode
    with pytest.raises(MiniclusterError, match="belongs to another user"):
        Folders(folder).make_private()
    assert folder.stat().st_mode == before


def test_an_open_folder_that_holds_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """A home, or a folder that a team shares: nobody meant to close that."""
    (tmp_path / "notes").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(MiniclusterError, match="holds other things: choose an empty folder"):
        Folders(tmp_path).make_private()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
