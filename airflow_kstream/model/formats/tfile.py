"""Hadoop's TFile, read from anywhere but its beginning: the records of its blocks, in their order.

The layout is that of org.apache.hadoop.io.file.tfile (TFile, BCFile, Chunk, Utils): blocks of records, some meta
blocks, their index, and at the end the index's offset, a version and sixteen bytes that say what it is. A value of
unknown length is written in chunks. Uncompressed blocks are read where they are needed; a compressed one as a whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from airflow_kstream.model.errors import InvalidInput

# Takes an offset and a number of bytes, and returns so many of them, or fewer at the end of the file.
ReadAt = Callable[[int, int], bytes]

_MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
# An offset of eight bytes, two numbers of two bytes, and the magic.
_TAIL = 8 + 4 + len(_MAGIC)
_PAGE = 64 * 1024
# In bytes: of an index, or of a block that has to be inflated as a whole.
_LARGEST_INDEX, _LARGEST_BLOCK = 4 << 20, 64 << 20


class Cursor:
    """A position in bytes that are read page by page. Raises InvalidInput: when they end too early."""

    def __init__(self, read_at: ReadAt, at: int = 0) -> None:
        self._read_at, self.at = read_at, at
        self._page, self._page_at = b"", 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size < 0:
            raise InvalidInput(f"it is damaged: a length of {size}")
        begin = self.at - self._page_at
        if not 0 <= begin <= begin + size <= len(self._page):
            self._page, self._page_at, begin = self._read_at(self.at, max(size, _PAGE)), self.at, 0
        taken = self._page[begin : begin + size]
        if len(taken) < size:
            raise InvalidInput(f"it is damaged: it ends at {self.at + len(taken)}")
        self.at += size
        return taken

    def skip(self, size: int) -> None:
        self.at += size

    def number(self) -> int:
        """Return a number as Utils.readVLong does: small ones are one byte, others tell their length in the first."""
        first = int.from_bytes(self.take(1), signed=True)
        for least, base, more in ((-32, 0, 0), (-72, 52, 1), (-104, 88, 2), (-120, 112, 3)):
            if first >= least:
                return (first + base) << 8 * more | int.from_bytes(self.take(more))
        return int.from_bytes(self.take(first + 129), signed=True)

    def sized(self) -> bytes:
        """Return bytes after their number."""
        size = self.number()
        if size > _LARGEST_INDEX:
            raise InvalidInput(f"it is damaged: {size} bytes where a name was expected")
        return self.take(size)


class Chunks:
    """A value in chunks (Chunk.ChunkDecoder): the length of each but the last is negative."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor, self._left, self._last = cursor, 0, False

    @property
    def ended(self) -> bool:
        """Return whether nothing follows; it may read the next chunk's length to know."""
        while not self._left and not self._last:
            length = self._cursor.number()
            self._left, self._last = abs(length), length >= 0
        return not self._left

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises InvalidInput: when the value has fewer."""
        return b"".join(self._cursor.take(part) for part in self._parts(size))

    def skip(self, size: int) -> None:
        for part in self._parts(size):
            self._cursor.skip(part)

    def skip_the_rest(self) -> None:
        while not self.ended:
            self.skip(self._left)

    def text(self) -> str:
        """Return a string as DataOutput.writeUTF writes it."""
        return self.take(int.from_bytes(self.take(2))).decode(errors="replace")

    def _parts(self, size: int) -> Iterator[int]:
        while size:
            if self.ended:
                raise InvalidInput(f"it is damaged: a value ends {size} bytes too early")
            part = min(size, self._left)
            self._left -= part
            yield part
            size -= part


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

    Raises InvalidInput: when it is no TFile, or one that is damaged or compressed in a way not known here.
    """
    metas = _metas(read_at, length)
    compression, regions = _data_index(_block(read_at, *_named(metas, "BCFile.index")))
    counts = _record_counts(_block(read_at, *_named(metas, "TFile.index")), len(regions))
    for region, count in zip(regions, counts, strict=True):
        cursor = _block(read_at, compression, region)
        for place in range(count):
            key, value = cursor.sized(), Chunks(cursor)
            yield key, value
            if place + 1 < count:
                value.skip_the_rest()


def is_tfile(read_at: ReadAt, length: int) -> bool:
    """Return whether it ends as a TFile does."""
    return length > _TAIL and read_at(length - _TAIL, _TAIL).endswith(_MAGIC)


def _metas(read_at: ReadAt, length: int) -> Mapping[str, _Meta]:
    if not is_tfile(read_at, length):
        raise InvalidInput("it is no TFile")
    tail = read_at(length - _TAIL, _TAIL)
    cursor, metas = Cursor(read_at, int.from_bytes(tail[:8])), {}
    for _ in range(cursor.number()):
        name, compression = cursor.sized().decode(errors="replace"), cursor.sized().decode(errors="replace")
        metas[name.removeprefix("data:")] = _Meta(compression, _region(cursor))
    return metas


def _named(metas: Mapping[str, _Meta], name: str) -> _Meta:
    if name not in metas:
        raise InvalidInput(f"it is no TFile: it has no {name}")
    return metas[name]


def _data_index(cursor: Cursor) -> tuple[str, list[_Region]]:
    compression = cursor.sized().decode(errors="replace")
    return compression, [_region(cursor) for _ in range(cursor.number())]


def _record_counts(cursor: Cursor, blocks: int) -> list[int]:
    """Return the number of records in each block; each entry of the index has the block's last key before it."""
    cursor.sized()
    return [_record_count(cursor.sized()) for _ in range(blocks)]


def _record_count(entry: bytes) -> int:
    cursor = _over(entry)
    cursor.sized()
    return cursor.number()


def _region(cursor: Cursor) -> _Region:
    return _Region(cursor.number(), cursor.number(), cursor.number())


def _block(read_at: ReadAt, compression: str, region: _Region) -> Cursor:
    if compression == "none":
        return Cursor(read_at, region.offset)
    if compression != "gz":
        raise InvalidInput(f"its blocks are compressed with {compression}, which is not read here")
    if region.raw > _LARGEST_BLOCK or not 0 <= region.stored <= _LARGEST_BLOCK:
        raise InvalidInput(f"a compressed block of {region.raw} bytes is too large to be read")
    try:
        return _over(zlib.decompressobj().decompress(read_at(region.offset, region.stored), _LARGEST_BLOCK))
    except zlib.error as error:
        raise InvalidInput(f"it is damaged: {error}") from None


def _over(content: bytes) -> Cursor:
    return Cursor(lambda at, size: content[at : at + size])
