"""Small texts in a folder that is this user's alone. No link leads to another one, neither a folder nor a file."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
# A pipe must not block us.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def keep_text(folder: Path, name: str, text: str) -> None:
    """Write a text, over an older one of this name; a folder that is missing is made with mode 0700.

    Raises OSError: also when the folder is somebody else's, or others may enter it.
    """
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    with _own(folder) as place:
        draft = f".{name[:100]}.{secrets.token_hex(8)}"
        try:
            with open(os.open(draft, _NEW, 0o600, dir_fd=place), "w") as file:  # noqa: PTH123  a descriptor
                file.write(text)
            os.rename(draft, name, src_dir_fd=place, dst_dir_fd=place)
        except OSError:
            with suppress(OSError):
                os.unlink(draft, dir_fd=place)
            raise


def kept_text(folder: Path, name: str, largest: int) -> str | None:
    """Return a text that was kept, None if there is none. Raises OSError: as `keep_text`, and when it is no regular
    file of ours, or larger than so many bytes."""
    try:
        with _own(folder) as place, open(os.open(name, _READ, dir_fd=place), "rb") as file:  # noqa: PTH123  a descriptor
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size > largest:
                raise PermissionError(f"{folder / name} is no file that this process wrote")
            return file.read(largest).decode(errors="replace")
    except FileNotFoundError:
        return None


def forget_text(folder: Path, name: str) -> None:
    """Delete a text, if it is there. Raises OSError: as `keep_text`."""
    with suppress(FileNotFoundError), _own(folder) as place:
        os.unlink(name, dir_fd=place)


@contextmanager
def _own(folder: Path) -> Iterator[int]:
    place = os.open(folder, _FOLDER)
    try:
        status = os.fstat(place)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(f"{folder} is not this user's alone (mode 0700)")
        yield place
    finally:
        os.close(place)
