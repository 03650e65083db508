"""The watch of a run sees the keys of every minicluster below pytest's folder, and the words of every process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.secrets.watch import Watch
from tests.simulated.keytabs import Key, keytab_bytes


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """A watch that looks when it is asked to."""
    watch = Watch(tmp_path)
    watch.stop()
    return watch


@pytest.mark.parametrize("place", ["keytabs", "kdc"])
def test_a_key_is_seen_before_and_after_its_rotation(watch: Watch, tmp_path: Path, place: str) -> None:
    (tmp_path / "a-test-with-few-files").mkdir()
    keytab = tmp_path / "minicluster0" / place / "watched.keytab"
    keytab.parent.mkdir(parents=True)
    for version, secret in enumerate((b"a" * 32, b"b" * 32), start=1):
        keytab.write_bytes(keytab_bytes(Key(version, secret=secret)))
        os.utime(keytab, (version, version))
        watch.look()
    assert watch.secrets == {b"a" * 32, b"b" * 32}


def test_the_command_line_of_this_very_process_is_seen(watch: Watch) -> None:
    own = Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    watch.look()
    assert b" ".join(own).decode().strip() in watch.command_lines
