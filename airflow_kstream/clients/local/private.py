"""Files that nobody else on this host can read, at no moment."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "kstream-private-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder of mode 0700 that is gone afterwards, with all that was put into it.

    What a process that was killed left behind is swept by the next one on this host.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}[0-9]*-*"):
        process = left.name.removeprefix(_PREFIX).partition("-")[0]
        if _is_ours(left) and not Path(f"/proc/{process}").exists():
            shutil.rmtree(left, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.getuid()
    except FileNotFoundError:
        # Its own process has just ended, or another one sweeps.
        return False


def write_private(path: Path, content: bytes) -> Path:
    """Create the file with mode 0600; the mode is part of the creation. Raise FileExistsError when it is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor, not a path
        file.write(content)
    return path
