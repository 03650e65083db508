"""A private file replaced in one step: whoever reads sees the old one or the whole other one."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# No replacement takes so long. Process ids would not tell: hosts and containers may share the folder.
_LEFT_OVER_SECONDS = 600


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path`, 0600 and empty; at the end it is synced and takes the place of `path`.

    On an error in between `path` stays as it was. A folder that is missing is made with mode 0700. What killed
    processes left behind is swept by the next replacement. Raise OSError when the folder takes no file.
    """
    _make_private(path.parent)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield fresh
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    _sweep(path)


def _make_private(folder: Path) -> None:
    """Like mkdir -p, where each folder that is missing gets mode 0700 and not the last one alone."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _sweep(path: Path) -> None:
    oldest = time.time() - _LEFT_OVER_SECONDS
    beginning = f".{path.name}."
    # Names alone: a folder of hundreds of caches is swept with each of them.
    for name in os.listdir(path.parent):  # noqa: PTH208
        if name.startswith(beginning) and name.endswith(".tmp"):
            _remove_if_older(path.with_name(name), oldest)


def _remove_if_older(left: Path, oldest: float) -> None:
    try:
        if left.stat().st_mtime < oldest:
            left.unlink()
    except OSError:
        # Its own process has just finished with it, another one sweeps, or it is another user's.
        return
