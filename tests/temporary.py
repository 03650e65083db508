"""The folder that this process takes for the machine's temporary one, and whose rights it has there."""

from __future__ import annotations

import codecs
import os
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


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """Let the modes of files count for root, too."""
    # Python may lie where root alone may look, and loads the code of an encoding when it is first read.
    codecs.lookup("utf-8-sig")
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
