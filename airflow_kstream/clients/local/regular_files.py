"""Files that people name, read whole: never a pipe, which would block us, nor a device, which has no end.

`declaration_files` lists a folder of declarations, `declared_names` its names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from airflow_kstream.model.errors import InvalidInput

# As long as a declaration may be.
MAX_BYTES = 1024 * 1024
# Keyed by the first bytes; UTF-32 before UTF-16, which begins like it.
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_regular(path: Path, largest: int) -> tuple[bytes, os.stat_result]:
    """Read a file and its status. Raises OSError. Raises InvalidInput: when it is not a regular file, or larger."""
    with open(path, "rb", opener=_without_waiting) as file:
        status = _require_regular(path, file.fileno())
        content = file.read(largest + 1)
    if len(content) > largest:
        raise InvalidInput(f"{path} has more than {largest} bytes")
    return content, status


def read_text(path: Path) -> str:
    """Read a declaration. Raises InvalidInput: when it can't be read as UTF-8 text; the message names the file."""
    try:
        return decoded(read_regular(path, MAX_BYTES)[0])
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be read: {_reason(error)}") from None
    except InvalidInput as error:
        raise InvalidInput(error.message if str(path) in error.message else f"{path}: {error.message}") from None


def decoded(content: bytes) -> str:
    """Decode UTF-8, with or without its mark. Raises InvalidInput: when it is anything else, or too long."""
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"it has {len(content)} bytes; allowed are {MAX_BYTES}")
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            raise InvalidInput(f"it is {encoding}; allowed is UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"line {line} has the byte 0x{content[error.start]:02x}; allowed is UTF-8") from None
    if "\0" in text:
        raise InvalidInput(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} has a NUL; allowed is text in UTF-8")
    return text


def require_readable(path: Path) -> None:
    """Raises InvalidInput: when there is no regular file that this process may read."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            _require_regular(path, file.fileno())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be read: {_reason(error)}") from None


def require_there(path: Path) -> None:
    """Raises InvalidInput: when there is no such file or folder. One that can't be looked at may be there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise InvalidInput(f"{path} can't be read: {_reason(error)}") from None
    except OSError:
        return


def real_path(path: str) -> str:
    """Return where a path leads on this host, once its symlinks and '..' are followed; what is missing, as it is.

    It asks the disk, which may hang: never in an event loop.
    """
    try:
        return os.path.realpath(path)
    except ValueError:
        # No file can have such a name: it has a NUL.
        return path


def is_special(path: Path) -> bool:
    """Return True if it exists and is not a regular file: a library that opens a pipe waits forever."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def may_be_folder(path: Path) -> bool:
    """Return whether it is a folder, or can't be looked at."""
    try:
        return path.is_dir()
    except OSError:
        return True


def require_folder(path: Path) -> None:
    """Raises InvalidInput: when there is no folder that this process may enter."""
    try:
        if not path.is_dir():
            raise InvalidInput(f"{path} is not a folder")
        for inside in path.iterdir():
            # Who may list it may not be one who may enter it.
            inside.lstat()
            break
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be read: {_reason(error)}") from None


def _require_regular(path: Path, descriptor: int) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is not a regular file but a folder, a pipe or a device")
    return status


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def declaration_files(folder: Path) -> list[Path]:
    """Return the YAML files in the folder and below, without hidden ones: editors keep such beside an open file.

    Raises OSError: when a folder can't be read.
    """
    found = (file for file in _files_below(folder) if file.suffix in {".yaml", ".yml"})
    return sorted(file for file in found if not any(part.startswith(".") for part in file.relative_to(folder).parts))


def declared_names(folder: Path | None) -> frozenset[str] | None:
    """Return the names in the folder and below, whichever connection they are for; None if that is not known.

    A folder without any file proves nothing: its disk may not be mounted, or a checkout may be under way. Neither does
    one of which a part can't be read.
    """
    if folder is None:
        return None
    try:
        return frozenset(file.stem for file in _files_below(folder) if file.match("*.y*ml")) or None
    except OSError:
        return None


def is_nobodys(name: str) -> bool:
    """Return whether no connection can be meant by a folder of this name: a hidden one, or the filesystem's own."""
    return name.startswith(".") or name == "lost+found"


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield all files. Raises OSError: when a folder can't be read, of which Path.rglob says nothing."""

    def refuse(error: OSError) -> None:
        if not any(map(is_nobodys, Path(error.filename).relative_to(folder).parts)):
            raise error

    for within, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(within, name) for name in names)
