"""Files that nobody else on this host can read, at no moment."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder of mode 0700 that is gone afterwards, with all that was put into it."""
    folder = Path(tempfile.mkdtemp(prefix="kstream-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_private(path: Path, content: bytes) -> Path:
    """Create the file with mode 0600; the mode is part of the creation. Raise FileExistsError when it is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor, not a path
        file.write(content)
    return path
