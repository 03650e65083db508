"""Private folders, with several processes that make and sweep them at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from airflow_kstream.clients.local.private import private_folder

MANY_TIMES = """
from airflow_kstream.clients.local.private import private_folder
for _ in range(300):
    with private_folder():
        pass
"""


def test_a_private_folder_is_ours_alone_and_gone_afterwards() -> None:
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_processes_that_sweep_at_once_do_not_trip_over_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds folders of the others that vanish while it looks at them."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    running = [subprocess.Popen([sys.executable, "-c", MANY_TIMES], stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate()[1] for process in running] == [b""] * len(running)


def test_what_a_killed_process_left_behind_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, living = (tmp_path / f"kstream-private-{pid}-x" for pid in (ended.pid, os.getppid()))
    left.mkdir()
    living.mkdir()
    with private_folder():
        assert (left.exists(), living.exists()) == (False, True)
