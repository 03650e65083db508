"""A private file replaced in one step: a reader sees the old one or the complete new one."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# No replacement takes this long. Process ids would not help: hosts and containers may share the folder.
_LEFT_OVER_SECONDS = 600


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path` with mode 0600; at the end, sync it and let it replace `path`.

    An error in between leaves `path` as it was. A missing folder is made with mode 0700. The next replacement removes
    the leftovers of killed processes. Raises OSError: when the folder is not writable.
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
    """Create folders like mkdir -p, but give every missing one mode 0700, not only the last."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _sweep(path: Path) -> None:
    oldest = time.time() - _LEFT_OVER_SECONDS
    beginning = f".{path.name}."
    # Only names, because a folder of hundreds of caches is swept once for each of them.
    for name in os.listdir(path.parent):  # noqa: PTH208
        if name.startswith(beginning) and name.endswith(".tmp"):
            _remove_if_older(path.with_name(name), oldest)


def _remove_if_older(left: Path, oldest: float) -> None:
    try:
        if left.stat().st_mtime < oldest:
            left.unlink()
    except OSError:
        # Its own process has just finished with it, another process is sweeping, or it is another user's.
        return
