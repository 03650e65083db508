"""Files that nobody else on this host can read at any moment."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "kstream-private-"
# A process id would not tell whether a folder is in use: containers that share TMPDIR see each other's folders, but
# not each other's processes. The kernel releases a lock when the last process that holds it ends.
_LOCK = ".lock"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a folder of mode 0700; it and its content are removed afterwards.

    The next process that makes one removes the leftovers of killed processes, but never a folder in use.
    """
    _sweep()
    folder, lock = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def kept_for_a_child(folder: Path) -> Iterator[int]:
    """Yield a descriptor for `pass_fds`: while the child lives, nobody sweeps the folder, even if this process died."""
    lock = _share(folder)
    try:
        yield lock
    finally:
        os.close(lock)


def write_private(path: Path, content: bytes) -> Path:
    """Create the file, with mode 0600 from the beginning. Raises FileExistsError: when it already exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor, not a path
        file.write(content)
    return path


def _make() -> tuple[Path, int]:
    """Make a folder and lock it. A sweeper in between takes it for a leftover: then make another one."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            lock = _share(folder)
            if os.fstat(lock).st_nlink:
                return folder, lock
            os.close(lock)


def _share(folder: Path) -> int:
    lock = _open_lock(folder)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _open_lock(folder: Path) -> int:
    # Writable, because NFS requires that for an exclusive lock.
    return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _sweep() -> None:
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Its own process has just ended, another process is sweeping, or it is in use.
        with suppress(OSError):
            if left.lstat().st_uid == os.getuid():
                _remove_unless_in_use(left)


def _remove_unless_in_use(folder: Path) -> None:
    lock = _open_lock(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
