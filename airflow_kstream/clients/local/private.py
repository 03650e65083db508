"""Files that nobody else on this host can read at any moment, and small texts in a folder that is this user's alone:
nobody else can put one there, nor a link to another file. A file is replaced in one step: a reader sees the old one or
the complete new one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from airflow_kstream.clients.local.regular_files import read_regular

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
    _sweep_beside(path)


def _make_private(folder: Path) -> None:
    """Create folders like mkdir -p, but give every missing one mode 0700, not only the last."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _sweep_beside(path: Path) -> None:
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


def keep_text(folder: Path, name: str, text: str) -> None:
    """Write a text, over an older one of this name; a folder that is missing is made with mode 0700.

    Raises OSError: also when the folder is somebody else's, or others may enter it.
    """
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    _require_own(folder)
    with replacing(folder / name) as fresh:
        fresh.write_text(text)


def kept_text(folder: Path, name: str, largest: int) -> str | None:
    """Return a text that was kept, None if there is none.

    Raises OSError: as `keep_text`. Raises InvalidInput: when it is not a regular file, or larger than so many bytes.
    """
    try:
        _require_own(folder)
        return read_regular(folder / name, largest)[0].decode(errors="replace")
    except FileNotFoundError:
        return None


def forget_text(folder: Path, name: str) -> None:
    """Delete a text, if it is there. Raises OSError: as `keep_text`."""
    with suppress(FileNotFoundError):
        _require_own(folder)
        (folder / name).unlink()


def _require_own(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not this user's alone (a folder of mode 0700)")
