"""Log files of this host as blocks of bytes: plain, compressed, or as YARN aggregates them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from airflow_kstream.clients.local.regular_files import require_readable
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.aggregated_logs import aggregated_files
from airflow_kstream.model.log_scan.tfile import is_tfile

# In bytes.
_BLOCK = 16 << 20
# By the first bytes of a file, not by its name.
_OPENERS: tuple[tuple[bytes, Callable[[Path], io.BufferedIOBase]], ...] = (
    (b"\x1f\x8b", gzip.GzipFile),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
    (b"", lambda path: io.BufferedReader(io.FileIO(path))),
)
_DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)


@dataclass(frozen=True)
class LogFile:
    """A log with its name for people, and its content in blocks."""

    name: str
    blocks: Iterator[bytes]


def files_below(path: Path) -> list[Path]:
    """Return the file, or all files below the folder that are not hidden, in the order of their paths.

    Raises InvalidInput: when there is nothing at the path.
    """
    if not path.is_dir():
        require_readable(path)
        return [path]
    below = (file for file in path.rglob("*") if not any(part.startswith(".") for part in file.relative_to(path).parts))
    return sorted(file for file in below if file.is_file())


def log_files(path: Path, name: str) -> Iterator[LogFile]:
    """Yield the logs of a file: one, or those of all containers in an aggregated one.

    Raises InvalidInput: while it is read, when it is no text, or damaged.
    """
    with path.open("rb") as file:
        length = file.seek(0, 2)

        def read_at(at: int, size: int) -> bytes:
            file.seek(at)
            return file.read(size)

        if is_tfile(read_at, length):
            for log in aggregated_files(read_at, length):
                yield LogFile(f"{name}#{log.container}/{log.name}", log.blocks)
            return
    yield LogFile(name, _blocks(path))


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        beginning = file.read(8)
    opener = next(opener for magic, opener in _OPENERS if beginning.startswith(magic))
    try:
        with opener(path) as file:
            for number, block in enumerate(iter(partial(file.read, _BLOCK), b"")):
                if not number and b"\0" in block[:4096]:
                    raise InvalidInput("it is no text")
                yield block
    except _DAMAGED as error:
        raise InvalidInput(f"it can't be read: {error}") from None
