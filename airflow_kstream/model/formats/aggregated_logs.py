"""The logs of one node's containers as YARN aggregates them: a TFile with a record for each container.

The layout of a record is that of AggregatedLogFormat.LogValue: for each file its name, its length in digits, and its
content, in the order of the names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from airflow_kstream.model.container_log import LogTail, tail_of
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.tfile import Chunks, ReadAt, records

_LONGEST_NUMBER = len(str(2**63))


# In bytes.
_BLOCK = 4 << 20


@dataclass(frozen=True)
class AggregatedFile:
    """A container's file in an aggregated log; its blocks are to be read, if at all, before the next file."""

    container: str
    name: str
    length: int
    blocks: Iterator[bytes]


def aggregated_files(read_at: ReadAt, length: int) -> Iterator[AggregatedFile]:
    """Yield every file of every container. Raises InvalidInput: as `aggregated_tails` does."""
    for key, value in records(read_at, length):
        # A string as DataOutput.writeUTF writes it: two bytes of length come first.
        container = key[2:].decode(errors="replace")
        if not container.startswith("container_"):
            continue
        while not value.ended:
            name, size = _next_file(value)
            left = _Left(size)
            yield AggregatedFile(container, name, size, _blocks(value, left))
            value.skip(left.size)


class _Left:
    """The bytes of a file that were not read yet."""

    def __init__(self, size: int) -> None:
        self.size = size


def _blocks(value: Chunks, left: _Left) -> Iterator[bytes]:
    while left.size:
        size = min(left.size, _BLOCK)
        left.size -= size
        yield value.take(size)


def _next_file(value: Chunks) -> tuple[str, int]:
    name, digits = value.text(), value.text()
    if not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
        raise InvalidInput(f"it is damaged: {name} is {digits[:20]!r} bytes long")
    return name, int(digits)


def aggregated_tails(
    read_at: ReadAt, length: int, container: str, names: Collection[str], size: int
) -> Mapping[str, LogTail]:
    """Return the last `size` bytes of the container's files of these names; it lacks those that are not there.

    Raises InvalidInput: when the file is none of this format, which is that of LogAggregationTFileController.
    """
    for key, value in records(read_at, length):
        # A string as DataOutput.writeUTF writes it: two bytes of length come first.
        if key[2:].decode(errors="replace") == container:
            return _tails(value, names, size)
    return {}


def _tails(value: Chunks, names: Collection[str], size: int) -> Mapping[str, LogTail]:
    tails: dict[str, LogTail] = {}
    while len(tails) < len(names) and not value.ended:
        name, length = _next_file(value)
        taken = min(length, size) if name in names else 0
        value.skip(length - taken)
        if name in names:
            tails[name] = tail_of(value.take(taken), length)
    return tails
