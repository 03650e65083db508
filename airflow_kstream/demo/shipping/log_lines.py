"""The complete lines of a file that another process is still writing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from airflow_kstream.model.errors import InvalidInput

# The largest block of a file, and so the longest line. Half of a Kafka broker's usual limit of 1 MiB.
BLOCK_BYTES = 512 * 1024
_HEAD_BYTES = 256


@dataclass(frozen=True)
class Position:
    """A position. `end`: the byte after the last newline read. `head`: SHA-256 of the first `head_length` bytes."""

    end: int = 0
    head_length: int = 0
    head: str = ""


@dataclass(frozen=True)
class Line:
    """One line. `offset` is that of its first byte; `content` excludes the newline."""

    offset: int
    content: bytes


@dataclass(frozen=True)
class Block:
    """A block of complete lines of one file, and the position after them."""

    name: str
    lines: Sequence[Line]
    position: Position


def next_block(name: str, path: Path, position: Position) -> Block | None:
    """Return the complete lines after `position`, at most BLOCK_BYTES of them; None if there are none yet.

    A last line without newline waits until it is complete; a file that does not exist yet has no lines. Raises
    InvalidInput: when the file is not the one of `position` (rotated, truncated), or a line is too long.
    """
    try:
        with path.open("rb") as stream:
            return _next_block(name, path, position, stream)
    except FileNotFoundError as error:
        if position.end:
            raise _replaced(name, path, position, "is gone") from error
        return None


def _next_block(name: str, path: Path, position: Position, stream: BinaryIO) -> Block | None:
    _refuse_another_file(name, path, position, stream)
    stream.seek(position.end)
    data = stream.read(BLOCK_BYTES)
    length = data.rfind(b"\n") + 1
    if length:
        return Block(name, list(_lines(data[:length], position.end)), _position(stream, position.end + length))
    if len(data) == BLOCK_BYTES:
        where = f"files.{name}: {path} at byte {position.end}"
        raise InvalidInput(f"{where}: a line of more than {BLOCK_BYTES} bytes, the longest that is taken")
    return None


def _lines(data: bytes, offset: int) -> Iterator[Line]:
    for content in data[:-1].split(b"\n"):
        yield Line(offset, content)
        offset += len(content) + 1


def _position(stream: BinaryIO, end: int) -> Position:
    length = min(end, _HEAD_BYTES)
    return Position(end, length, _head(stream, length))


def _head(stream: BinaryIO, length: int) -> str:
    stream.seek(0)
    return hashlib.sha256(stream.read(length)).hexdigest()


def _refuse_another_file(name: str, path: Path, position: Position, stream: BinaryIO) -> None:
    if stream.seek(0, 2) < position.end:
        raise _replaced(name, path, position, "is shorter than what was taken of it")
    if position.end and _head(stream, position.head_length) != position.head:
        raise _replaced(name, path, position, "begins with other bytes than it did")


def _replaced(name: str, path: Path, position: Position, what: str) -> InvalidInput:
    return InvalidInput(
        f"files.{name}: {path} {what} ({position.end} bytes), so it was rotated, truncated or replaced; "
        "nobody can tell which of its lines were taken. Take the file that is there now under a name of its own"
    )
