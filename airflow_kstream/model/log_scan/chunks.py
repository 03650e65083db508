"""Values in chunks, as a TFile has them (org.apache.hadoop.io.file.tfile.Chunk), read from anywhere in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

# Takes an offset and a number of bytes, and returns so many of them, or fewer at the end of the file.
ReadAt = Callable[[int, int], bytes]

_PAGE = 64 * 1024
# In bytes, of a name or an index.
LARGEST_INDEX = 4 << 20
# In bytes: no file is longer, and no system reads beyond.
FARTHEST = 1 << 62


class Damaged(Exception):
    """Bytes that are not what they should be; the message says what is wrong with them."""


class Place(NamedTuple):
    """A place in a value: the chunk whose length stands at `at` in the file, and so many bytes of it before."""

    at: int
    before: int


class Cursor:
    """A position in bytes that are read page by page. Raises Damaged: when they end too early."""

    def __init__(self, read_at: ReadAt, at: int = 0) -> None:
        self._read_at, self.at = read_at, at
        self._page, self._page_at = b"", 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size < 0:
            raise Damaged(f"it is damaged: a length of {size}")
        if self.at > FARTHEST:
            raise Damaged(f"it is damaged: no file has a place {self.at}")
        begin = self.at - self._page_at
        if not 0 <= begin <= begin + size <= len(self._page):
            self._page, self._page_at, begin = self._read_at(self.at, max(size, _PAGE)), self.at, 0
        taken = self._page[begin : begin + size]
        if len(taken) < size:
            raise Damaged(f"it is damaged: it ends at {self.at + len(taken)}")
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
        if size > LARGEST_INDEX:
            raise Damaged(f"it is damaged: {size} bytes where a name was expected")
        return self.take(size)


class Chunks:
    """A value in chunks (Chunk.ChunkDecoder): the length of each but the last is negative."""

    def __init__(self, cursor: Cursor, at: int | None = None) -> None:
        """Begin where the cursor is; `at` is that place in the file, None if it is in memory."""
        self.at = at
        self._cursor, self._left, self._last = cursor, 0, False
        # Where the chunk's length stands, and how long it is.
        self._chunk_at, self._chunk = cursor.at, 0
        # Bytes of the value, taken or skipped.
        self.taken = 0

    @property
    def ended(self) -> bool:
        """Return whether nothing follows; it may read the next chunk's length to know."""
        while not self._left and not self._last:
            self._chunk_at = self._cursor.at
            length = self._cursor.number()
            self._chunk = self._left = abs(length)
            self._last = length >= 0
        return not self._left

    @property
    def place(self) -> Place:
        """Return where it is now."""
        return Place(self._chunk_at, self._chunk - self._left)

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises Damaged: when the value has fewer."""
        return b"".join(self._cursor.take(part) for part in self._parts(size))

    def skip(self, size: int) -> None:
        for part in self._parts(size):
            self._cursor.skip(part)

    def leap(self, size: int) -> None:
        """Skip the next `size` bytes, many chunks at once where they seem to be equally long.

        Within one large file they are: the writer's buffer makes them. A reader of what was leaped over must verify
        that by `require`.
        """
        end = self.taken + size
        while self.taken < end:
            if not self._left and not self._last:
                self._leap_over_chunks(end - self.taken)
            self._cursor.skip(next(self._parts(end - self.taken), 0))

    def skip_the_rest(self) -> None:
        while not self.ended:
            self.skip(self._left)

    def require(self, place: Place) -> None:
        """Check that it is at this place. Raises Damaged: when it is elsewhere."""
        if self.place != place:
            raise Damaged("it can't be cut: its chunks are not equally long")

    def _leap_over_chunks(self, size: int) -> None:
        begin = self._cursor.at
        length = self._cursor.number()
        stride = self._cursor.at - begin - length
        chunks = size // -length if length < 0 else 0
        while chunks and not self._is_length(begin + chunks * stride, length):
            chunks //= 2
        self._cursor.at = self._chunk_at = begin + chunks * stride
        self._chunk = 0
        self.taken += chunks * -length

    def _is_length(self, at: int, length: int) -> bool:
        self._cursor.at = at
        try:
            return self._cursor.number() == length
        except Damaged:
            return False

    def text(self) -> str:
        """Return a string as DataOutput.writeUTF writes it."""
        return self.take(int.from_bytes(self.take(2))).decode(errors="replace")

    def _parts(self, size: int) -> Iterator[int]:
        while size:
            if self.ended:
                raise Damaged(f"it is damaged: a value ends {size} bytes too early")
            part = min(size, self._left)
            self._left -= part
            self.taken += part
            yield part
            size -= part


def content_at(read_at: ReadAt, place: Place, early: int = 0) -> Chunks:
    """Return the value from the place on, or from `early` bytes before it, which must be in the same chunk."""
    value = Chunks(Cursor(read_at, place.at))
    value.skip(place.before - early)
    return value
