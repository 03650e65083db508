"""Hadoop's TFile, read from anywhere but its beginning: the records of its blocks, in their order.

The layout is that of org.apache.hadoop.io.file.tfile (TFile, BCFile, Chunk, Utils): blocks of records, some meta
blocks, their index, and at the end the index's offset, a version and sixteen bytes that say what it is. A value of
unknown length is written in chunks. Uncompressed blocks are read where they are needed; a compressed one as a whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .chunks import FARTHEST, Chunks, Cursor, Damaged, Place, ReadAt

_MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
# An offset of eight bytes, two numbers of two bytes, and the magic.
_TAIL = 8 + 4 + len(_MAGIC)
# In bytes, of a file's block.
_CONTENT = 4 << 20
_LONGEST_NUMBER = len(str(2**63))
# In bytes, of a block that has to be inflated as a whole.
_LARGEST_BLOCK = 64 << 20
# In one file: at YARN's 256 kB each, they are a quarter of a terabyte.
_MOST_BLOCKS = 1 << 20


@dataclass(frozen=True)
class LoggedFile:
    """A container's file in an aggregated log; its blocks are to be read, if at all, before the next file."""

    container: str
    name: str
    size: int
    blocks: Iterator[bytes]


def logged_files(read_at: ReadAt, length: int) -> Iterator[LoggedFile]:
    """Yield every file of every container in a log that LogAggregationTFileController wrote.

    A record has the layout of AggregatedLogFormat.LogValue: for each file its name, its size in digits, and its
    content. Raises Damaged: as `records` does.
    """
    for key, value in records(read_at, length):
        yield from _files_of(_container(key), value)


def record_places(read_at: ReadAt, length: int) -> list[tuple[str, int]] | None:
    """Return each container, and where its record's value begins; None if the blocks are compressed.

    Raises Damaged: as `records` does.
    """
    found = [(_container(key), value.at) for key, value in records(read_at, length)]
    places = [(container, at) for container, at in found if container and at is not None]
    return places if all(at is not None for _, at in found) else None


def logged_files_at(read_at: ReadAt, container: str, at: int) -> Iterator[LoggedFile]:
    """Yield the files of the container's record, whose value begins there. Raises Damaged: as `records` does."""
    yield from _files_of(container, Chunks(Cursor(read_at, at)))


def cut_files_at(read_at: ReadAt, record: range, size: int) -> Iterator[tuple[str, int, list[Place]]]:
    """Yield name and size of each file of the record whose value is within these bytes, and the edges of its parts.

    Parts are `size` bytes long, the last one is shorter. Each edge is in the chunk of the byte before it. A reader of a
    part verifies the edge behind it by `require`.

    Raises Damaged: as `records` does.
    """
    value = Chunks(Cursor(read_at, record.start), record.start)
    while not value.ended:
        name, length = next_file(value)
        if length > record.stop - record.start:
            raise Damaged(f"it is damaged: {name} has {length} bytes, which is more than its record")
        first, edges = value.taken, []
        for edge in (*range(0, length, size), length) if length else ():
            value.leap(first + max(edge - 1, 0) - value.taken)
            value.skip(first + edge - value.taken)
            edges.append(value.place)
        value.leap(first + length - value.taken)
        yield name, length, edges


def _container(key: bytes) -> str:
    """Return the container's id, empty for another record. Two bytes of length come first: DataOutput.writeUTF."""
    name = key[2:].decode(errors="replace")
    return name if name.startswith("container_") else ""


def _files_of(container: str, value: Chunks) -> Iterator[LoggedFile]:
    while container and not value.ended:
        name, size = next_file(value)
        end = value.taken + size
        yield LoggedFile(container, name, size, _content(value, end))
        value.skip(end - value.taken)


def next_file(value: Chunks) -> tuple[str, int]:
    """Return the name and the size of the file that follows."""
    name, digits = value.text(), value.text()
    if not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
        raise Damaged(f"it is damaged: {name} is {digits[:20]!r} bytes long")
    return name, int(digits)


def _content(value: Chunks, end: int) -> Iterator[bytes]:
    while value.taken < end:
        yield value.take(min(end - value.taken, _CONTENT))


class _Region(NamedTuple):
    offset: int
    stored: int
    raw: int


class _Meta(NamedTuple):
    compression: str
    region: _Region


def records(read_at: ReadAt, length: int) -> Iterator[tuple[bytes, Chunks]]:
    """Yield the key and the value of each record; a value is to be read, if at all, before the next record.

    The last value of a block is never skipped chunk by chunk: a large one is always the last of its block.

    Raises Damaged: when it is not a TFile, or one that is damaged or compressed in a way not known here.
    """
    metas = _metas(read_at, length)
    compression, regions = _data_index(_block(read_at, *_named(metas, "BCFile.index")))
    counts = _record_counts(_block(read_at, *_named(metas, "TFile.index")), len(regions))
    for region, count in zip(regions, counts, strict=True):
        cursor = _block(read_at, compression, region)
        for place in range(count):
            key = cursor.sized()
            value = Chunks(cursor, cursor.at if compression == "none" else None)
            yield key, value
            if place + 1 < count:
                value.skip_the_rest()


def is_tfile(read_at: ReadAt, length: int) -> bool:
    """Return whether it ends as a TFile does."""
    return length > _TAIL and read_at(length - _TAIL, _TAIL).endswith(_MAGIC)


def _metas(read_at: ReadAt, length: int) -> Mapping[str, _Meta]:
    if not is_tfile(read_at, length):
        raise Damaged("it is not a TFile")
    tail = read_at(length - _TAIL, _TAIL)
    cursor, metas = Cursor(read_at, int.from_bytes(tail[:8])), {}
    for _ in range(cursor.number()):
        name, compression = cursor.sized().decode(errors="replace"), cursor.sized().decode(errors="replace")
        metas[name.removeprefix("data:")] = _Meta(compression, _region(cursor))
    return metas


def _named(metas: Mapping[str, _Meta], name: str) -> _Meta:
    if name not in metas:
        raise Damaged(f"it is not a TFile: it has no {name}")
    return metas[name]


def _data_index(cursor: Cursor) -> tuple[str, list[_Region]]:
    compression, blocks = cursor.sized().decode(errors="replace"), cursor.number()
    if not 0 <= blocks <= _MOST_BLOCKS:
        raise Damaged(f"it is damaged: it has {blocks} blocks")
    return compression, [_region(cursor) for _ in range(blocks)]


def _record_counts(cursor: Cursor, blocks: int) -> list[int]:
    """Return the number of records in each block; each entry of the index has the block's last key before it."""
    cursor.sized()
    return [_record_count(cursor.sized()) for _ in range(blocks)]


def _record_count(entry: bytes) -> int:
    cursor = _over(entry)
    cursor.sized()
    return cursor.number()


def _region(cursor: Cursor) -> _Region:
    region = _Region(cursor.number(), cursor.number(), cursor.number())
    if min(region) < 0 or region.offset > FARTHEST:
        raise Damaged(f"it is damaged: a block of {region.stored} bytes at {region.offset}")
    return region


def _block(read_at: ReadAt, compression: str, region: _Region) -> Cursor:
    if compression == "none":
        return Cursor(read_at, region.offset)
    if compression != "gz":
        raise Damaged(f"its blocks are compressed with {compression}, which is not read here")
    if max(region.raw, region.stored) > _LARGEST_BLOCK:
        raise Damaged(f"a compressed block of {region.raw} bytes is too large to be read")
    try:
        return _over(zlib.decompressobj().decompress(read_at(region.offset, region.stored), _LARGEST_BLOCK))
    except zlib.error as error:
        raise Damaged(f"it is damaged: {error}") from None


def _over(content: bytes) -> Cursor:
    return Cursor(lambda at, size: content[at : at + size])
