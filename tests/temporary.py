"""The folder that this process takes for the machine's temporary one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[Path]:
    """Let this process and its children make their temporary files in this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        # Python reads TMPDIR once in a process, and has read it by now.
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
