"""Bytes with secrets among them, read from front to back: Hadoop's Writables, and Protocol Buffers' messages."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.protobuf import Malformed, fields, read_varint, signed


class SecretBytes:
    """Content that no repr shows, so that no log shows it and no traceback with its local variables does."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return f"<{len(self)} secret bytes>"

    def reveal(self) -> bytes:
        return self._content


class Span:
    """A run of secret bytes, and how far it has been read.

    Every method is told `what` it reads, for the InvalidInput that it raises where the bytes can't be that, with a
    position in the whole content. A length is compared with what is left before anything is read: nothing takes
    more memory than the content, and what nobody asks for is never copied.
    """

    __slots__ = ("_content", "at", "end")

    def __init__(self, content: SecretBytes, at: int = 0, end: int | None = None) -> None:
        self._content = content
        self.at = at
        self.end = len(content) if end is None else end

    def __repr__(self) -> str:
        return f"<bytes {self.at} to {self.end} of {self._content!r}>"

    @property
    def left(self) -> int:
        return self.end - self.at

    @property
    def place(self) -> slice:
        """Where in the whole content the rest lies."""
        return slice(self.at, self.end)

    def reveal(self) -> bytes:
        """The rest, copied."""
        return self._content.reveal()[self.place]

    def text(self, what: str) -> str:
        """The rest as UTF-8."""
        try:
            return self.reveal().decode()
        except UnicodeDecodeError as error:
            at = self.at + error.start
        raise self.wrong(f"{what} is not UTF-8", at)

    def wrong(self, why: str, at: int | None = None) -> InvalidInput:
        """The error for what was noticed at this byte of the content; where we stand, if none is given."""
        return InvalidInput(f"byte {self.at if at is None else at}: {why}")

    def take(self, length: int, what: str) -> Span:
        """The next `length` bytes, as a span of their own."""
        if not 0 <= length <= self.left:
            raise self.wrong(f"{what} would have {length} bytes where {self.left} are left")
        self.at += length
        return Span(self._content, self.at - length, self.at)

    def byte(self, what: str) -> int:
        if not self.left:
            raise self.wrong(f"the bytes end before {what}")
        self.at += 1
        return self._content.reveal()[self.at - 1]

    def finished(self, what: str) -> None:
        if self.left:
            raise self.wrong(f"{self.left} bytes are left over after {what}")

    # org.apache.hadoop.io.WritableUtils

    def vlong(self, what: str) -> int:
        first = self.byte(what)
        first = first - 256 if first > 127 else first
        if first >= -112:
            return first
        negative = first < -120
        magnitude = int.from_bytes(self.take(-(first + 120) if negative else -(first + 112), what).reveal(), "big")
        return ~magnitude if negative else magnitude

    def vint(self, what: str) -> int:
        at, value = self.at, self.vlong(what)
        if not -(1 << 31) <= value < 1 << 31:
            raise self.wrong(f"{what} is {value}, which is no 32-bit number", at)
        return value

    def sized(self, what: str) -> Span:
        """What has its length in front: an array of bytes, or a Text."""
        return self.take(self.vint(f"the length of {what}"), what)

    # The wire format of Protocol Buffers

    def varint(self, what: str) -> int:
        try:
            value, self.at = read_varint(self._content.reveal(), self.at, self.end, what)
        except Malformed as error:
            why, at = error.why, error.at
        else:
            return value
        # Outside of the handler: the frames of what was raised there hold the bytes.
        raise self.wrong(why, at)

    def delimited(self, what: str) -> Span:
        return self.take(self.varint(f"the length of {what}"), what)

    def fields(self, what: str) -> Iterator[tuple[int, int | Span]]:
        """A message's fields in their order: numbers as they are, what has a length or a fixed width as spans."""
        try:
            for number, value in fields(self._content.reveal(), self.at, self.end, what):
                yield number, value if isinstance(value, int) else Span(self._content, value.start, value.stop)
        except Malformed as error:
            why, at = error.why, error.at
        else:
            self.at = self.end
            return
        raise self.wrong(why, at)


class SecretMessage:
    """A Protocol Buffers message by field number. Of a field that is there twice the last one counts.

    Raises InvalidInput for a field that is needed and missing, or is there as another type. What it may lack is
    empty or 0.
    """

    def __init__(self, raw: Span, what: str) -> None:
        self._raw = raw
        self._start = raw.at
        self._what = what
        self._fields = dict(raw.fields(what))

    def require(self, *numbers: int) -> None:
        for number in numbers:
            if number not in self._fields:
                raise self._raw.wrong(f"{self._what} lacks its field {number}", self._start)

    def run(self, number: int) -> Span:
        value = self._fields.get(number)
        if isinstance(value, int):
            raise self._raw.wrong(f"field {number} of {self._what} is a number", self._start)
        return self._raw.take(0, self._what) if value is None else value

    def text(self, number: int) -> str:
        return self.run(number).text(f"field {number} of {self._what}")

    def message(self, number: int) -> SecretMessage:
        return SecretMessage(self.run(number), f"field {number} of {self._what}")

    def int64(self, number: int) -> int:
        return signed(self._number(number), 64)

    def int32(self, number: int) -> int:
        """An int32, of which Hadoop takes the lower half of what is there."""
        return signed(self._number(number), 32)

    def _number(self, number: int) -> int:
        value = self._fields.get(number, 0)
        if not isinstance(value, int):
            raise self._raw.wrong(f"field {number} of {self._what} is no number", self._start)
        return value


def written_vint(value: int) -> bytes:
    """WritableUtils.writeVInt of a number that is not negative."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")
