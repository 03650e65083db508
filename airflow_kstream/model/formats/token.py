"""Bytes that contain secrets, read from front to back: Hadoop's Writables, and Protocol Buffers' messages."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.protobuf import Malformed, fields, read_varint, signed


class SecretBytes:
    """Content that no repr shows, and therefore no log and no traceback with its local variables."""

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

    The argument `what` names the thing to read. Raises InvalidInput: when the bytes can't be that; it names `what` and
    the position in the whole content. Every method checks a length against the remaining bytes before it reads, so
    that nothing takes more memory than the content. It copies only what a caller reveals.
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
        """Return the position of the rest in the whole content."""
        return slice(self.at, self.end)

    def reveal(self) -> bytes:
        """Return a copy of the rest."""
        return self._content.reveal()[self.place]

    def text(self, what: str) -> str:
        """Return the rest as UTF-8."""
        try:
            return self.reveal().decode()
        except UnicodeDecodeError as error:
            at = self.at + error.start
        raise self.wrong(f"{what} is not UTF-8", at)

    def wrong(self, why: str, at: int | None = None) -> InvalidInput:
        """Return an error that names this byte of the content; by default the current position."""
        return InvalidInput(f"byte {self.at if at is None else at}: {why}")

    def take(self, length: int, what: str) -> Span:
        """Take the next `length` bytes, as a span of their own."""
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
            raise self.wrong(f"{what} is {value}, which is not a 32-bit number", at)
        return value

    def sized(self, what: str) -> Span:
        """Take a value with its length in front: an array of bytes, or a Text."""
        return self.take(self.vint(f"the length of {what}"), what)

    # The wire format of Protocol Buffers

    def varint(self, what: str) -> int:
        try:
            value, self.at = read_varint(self._content.reveal(), self.at, self.end, what)
        except Malformed as error:
            why, at = error.why, error.at
        else:
            return value
        # Raised outside the handler: the frames of the exception caught there hold the bytes.
        raise self.wrong(why, at)

    def delimited(self, what: str) -> Span:
        return self.take(self.varint(f"the length of {what}"), what)

    def fields(self, what: str) -> Iterator[tuple[int, int | Span]]:
        """Yield a message's fields in order: numbers as they are; values with a length or a fixed width as spans."""
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
    """A Protocol Buffers message by field number. If a field occurs twice, the last one counts.

    Raises InvalidInput: when a required field is missing, or a field has another type. A missing optional field is
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
        """Return an int32; Hadoop uses the lower half of the number that was sent."""
        return signed(self._number(number), 32)

    def _number(self, number: int) -> int:
        value = self._fields.get(number, 0)
        if not isinstance(value, int):
            raise self._raw.wrong(f"field {number} of {self._what} is not a number", self._start)
        return value


def written_vint(value: int) -> bytes:
    """Encode a number that is not negative as WritableUtils.writeVInt does."""
    if value <= 127:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + value.to_bytes(size, "big")
