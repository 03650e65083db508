"""Small texts in a folder that is this user's alone: nobody else can put one there, nor a link to another file."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from airflow_kstream.clients.local.atomic import replacing
from airflow_kstream.clients.local.regular_files import read_regular


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
