"""Log files of this host as blocks of bytes: plain, compressed, or as YARN aggregates them; and work on their parts in
forks of this process, each of which has what this one has compiled, and a lock of Python's for itself.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from airflow_kstream.clients.local.regular_files import require_readable
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.log_scan.tfile import is_tfile
from airflow_kstream.model.logs.container_log import aggregated_files

Result = TypeVar("Result")
_works: Sequence[Callable[[], Any]] = ()

# In bytes. A larger block leaves the processor's cache before it is scanned, which makes the scan slower by half.
_BLOCK = 4 << 20
# In bytes, of a part: a smaller one is scanned before another process is there.
SMALLEST_PART = 64 << 20
# In bytes: no cut is looked for beyond.
_LONGEST_LINE = 64 << 20
# In bytes: what tells whether it is text.
_BEGINNING = 4096
# Bytes that a text lacks; one in so many may be such a byte all the same.
_OF_NO_TEXT, _SOME = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]"), 20
# By the first bytes of a file, not by its name.
_PACKED: tuple[tuple[bytes, Callable[[Path], io.BufferedIOBase]], ...] = (
    (b"\x1f\x8b", gzip.GzipFile),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
# The marks with which Windows begins a text of two bytes a character.
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)


@dataclass(frozen=True)
class LogFile:
    """A log with its name for people, and its content in blocks."""

    name: str
    blocks: Iterator[bytes]


def files_below(path: Path) -> list[Path]:
    """Return the file, or all that is not a folder below the folder and not hidden, in the order of their paths.

    Raises InvalidInput: when there is nothing at the path.
    """
    if not path.is_dir():
        require_readable(path)
        return [path]
    below = (file for file in path.rglob("*") if not any(part.startswith(".") for part in file.relative_to(path).parts))
    return sorted(file for file in below if not file.is_dir())


def plain_parts(path: Path, most: int, least: int = SMALLEST_PART) -> list[range]:
    """Cut a plain log into at most `most` parts of whole lines, of about `least` bytes or more; return their places.

    It is empty for a log that is small, compressed, aggregated or no text. Raises InvalidInput: when it can't be read.
    """
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            parts = min(most, length // least)
            return _plain_parts(file, length, parts) if parts > 1 else []
    except OSError as error:
        raise InvalidInput(f"it can't be read: {error}") from None


def _plain_parts(file: io.BufferedReader, length: int, parts: int) -> list[range]:
    if is_tfile(partial(_read_at, file), length) or not _is_plain(_read_at(file, 0, _BEGINNING)):
        return []
    edges = [0]
    for part in range(1, parts):
        file.seek(length * part // parts)
        rest = file.readline(_LONGEST_LINE)
        edges += [file.tell()] if rest.endswith(b"\n") else []
    return [range(begin, end) for begin, end in pairwise(sorted({*edges, length}))]


def blocks_of(path: Path, part: range) -> Iterator[bytes]:
    """Yield these bytes of a plain log. Raises InvalidInput: when they can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(part.start)
            while block := file.read(min(_BLOCK, part.stop - file.tell())):
                yield block
    except OSError as error:
        raise InvalidInput(f"it can't be read: {error}") from None


def log_files(path: Path, name: str) -> Iterator[LogFile]:
    """Yield the logs of a file: one, or those of all containers in an aggregated one.

    Raises InvalidInput: while it is read, when it is not text, or damaged.
    """
    with path.open("rb") as file:
        length, read_at = file.seek(0, os.SEEK_END), partial(_read_at, file)
        if is_tfile(read_at, length):
            for log in aggregated_files(read_at, length):
                yield LogFile(f"{name}#{log.container}/{log.name}", log.blocks)
            return
    yield LogFile(name, _blocks(path))


def _plain(path: Path) -> io.BufferedIOBase:
    return path.open("rb")


def _read_at(file: io.BufferedReader, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _is_plain(beginning: bytes) -> bool:
    return not any(beginning.startswith(magic) for magic, _ in _PACKED) and _is_text(beginning)


def _is_text(beginning: bytes) -> bool:
    """Return whether it is text: a host that crashed leaves some zeros in its logs."""
    other = len(_OF_NO_TEXT.findall(beginning))
    return b"\0" not in beginning or other * _SOME < len(beginning)


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
    opener = next((opener for magic, opener in _PACKED if beginning.startswith(magic)), _plain)
    try:
        with opener(path) as file:
            blocks = iter(partial(file.read, _BLOCK), b"")
            if beginning.startswith(_UTF16):
                blocks = (text.encode() for text in codecs.iterdecode(blocks, "utf-16", errors="replace"))
            yield from _texts(blocks)
    except _DAMAGED as error:
        raise InvalidInput(f"it can't be read: {error}") from None


def _texts(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a text without zeros, with which a log begins that was emptied while it was written.

    Raises InvalidInput: when it is not text.
    """
    empty, begun = True, False
    for each in blocks:
        if not begun and not _is_text(each.lstrip(b"\0")[:_BEGINNING]):
            raise InvalidInput("it is not text")
        block = each.replace(b"\0", b"")
        empty, begun = False, begun or bool(block)
        if block:
            yield block
    if not begun and not empty:
        raise InvalidInput("it is not text")


def may_fork() -> bool:
    """Return whether this process has one thread only: a lock that another one holds stays locked in a fork."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def in_forks(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do each work in a fork of its own, all at once, and return the results, which are pickled.

    Raises what a work raises, and Unavailable: when a fork was killed.
    """
    # They take time to import, and few logs are so large.
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    forks = ProcessPoolExecutor(len(works), get_context("fork"), initializer=_keep, initargs=(works,))
    try:
        with forks:
            return list(forks.map(_do, range(len(works))))
    except BrokenProcessPool:
        raise Unavailable("a process was killed: has this host enough memory?", tried="work on all cores") from None


def _keep(works: Sequence[Callable[[], Any]]) -> None:
    # A fork takes over what can't be pickled.
    global _works
    _works = works


def _do(number: int) -> Any:
    return _works[number]()
