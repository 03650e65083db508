"""The wire format of Protocol Buffers, as far as Hadoop uses it: numbers, texts and messages by field number.

Hand-written, because HDFS allows names that are not valid UTF-8: the protobuf runtime reads them as bytes and refuses
to send them. It also copies everything it reads, although credentials must stay in one place, and does not report the
byte at which a damaged file stops making sense. The field numbers are those of Hadoop's .proto files, which are frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Value = int | str | bytes
_VARINT, _FIXED_64, _DELIMITED, _FIXED_32 = 0, 1, 2, 5
_FIXED = {_FIXED_64: 8, _FIXED_32: 4}
_MASK_64 = (1 << 64) - 1
_VARINT_BYTES = 10


class Malformed(ValueError):
    """A run of bytes that is not a message: `why`, and the byte at which that shows."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(f"byte {at}: {why}")
        self.why = why
        self.at = at


def encode(fields: Mapping[int, Value | Sequence[Value]]) -> bytes:
    """Encode a message. Pass a nested message as its bytes, a repeated field as a list; negative numbers are int64."""
    parts: list[bytes] = []
    for number, content in fields.items():
        values = (content,) if isinstance(content, int | str | bytes) else content
        parts.extend(_field(number, value) for value in values)
    return b"".join(parts)


def delimited(message: bytes) -> bytes:
    """Return the message with its length in front."""
    return varint(len(message)) + message


def split_delimited(data: bytes) -> Iterator[bytes]:
    """Yield the messages that follow each other in `data`, each with its length in front."""
    position = 0
    while position < len(data):
        length, start = read_varint(data, position, len(data), "a message's length")
        if length > len(data) - start:
            raise Malformed(f"a message would have {length} bytes where {len(data) - start} are left", start)
        position = start + length
        yield data[start:position]


def varint(number: int) -> bytes:
    number &= _MASK_64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """Encode a number for the types sint32 and sint64."""
    return (number << 1) ^ (number >> 63)


def fields(content: bytes, at: int, end: int, what: str) -> Iterator[tuple[int, int | slice]]:
    """Yield the fields of the message that lies from `at` to `end`: numbers as they are, all others as their position.

    It copies nothing, and checks a length against the remaining bytes before it reads. Raises Malformed: when the bytes
    are not a message.
    """
    number_of = f"a number of {what}"
    while at < end:
        start = at
        tag, at = read_varint(content, at, end, number_of)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise Malformed(f"{what} has a field of number 0", start)
        if wire == _VARINT:
            value, at = read_varint(content, at, end, number_of)
            yield number, value
            continue
        if wire == _DELIMITED:
            length, at = read_varint(content, at, end, number_of)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise Malformed(f"field {number} of {what} is of wire type {wire}, which Hadoop never writes", start)
        if length > end - at:
            raise Malformed(f"field {number} of {what} would have {length} bytes where {end - at} are left", at)
        yield number, slice(at, at + length)
        at += length


def read_varint(content: bytes, at: int, end: int, what: str) -> tuple[int, int]:
    """Return the number that begins at `at`, and its end. Raises Malformed: when it is cut off or too long."""
    # Most are lengths and tags of one byte.
    if at < end and content[at] < 0x80:
        return content[at], at + 1
    value = 0
    for index in range(min(_VARINT_BYTES, end - at)):
        byte = content[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & _MASK_64, at + index + 1
    if end - at < _VARINT_BYTES:
        raise Malformed(f"the bytes end before {what}", end)
    raise Malformed(f"{what} is a number of more than {_VARINT_BYTES} bytes", at)


def signed(value: int, bits: int = 64) -> int:
    """Return the number as a signed one; Hadoop uses its lower `bits`."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class Message:
    """The fields of a message, by number. If a field occurs twice the last one counts, unless the caller reads all.

    Raises Malformed: when a field is read as another type than it was sent, or the bytes are not a message.
    """

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in fields(data, 0, len(data), "the message"):
            content = value if isinstance(value, int) else data[value]
            self._fields.setdefault(number, []).append(content)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def number(self, number: int, default: int = 0) -> int:
        value = self._last(number, default)
        if not isinstance(value, int):
            raise Malformed(f"field {number} is not a number", 0)
        return value

    def signed(self, number: int, default: int = 0) -> int:
        """Return a number of type int32 or int64."""
        return signed(self.number(number, default))

    def data(self, number: int) -> bytes:
        value = self._last(number, b"")
        if isinstance(value, int):
            raise Malformed(f"field {number} is a number", 0)
        return value

    def text(self, number: int) -> str:
        """Return a text. Bytes that are not valid UTF-8 survive in it, so that `encode` can send them back."""
        return self.data(number).decode(errors="surrogateescape")

    def message(self, number: int) -> Message:
        """Return a nested message, an empty one if it is missing."""
        return Message(self.data(number))

    def messages(self, number: int) -> tuple[Message, ...]:
        values = self._fields.get(number, [])
        return tuple(Message(value) for value in values if isinstance(value, bytes))

    def _last(self, number: int, default: int | bytes) -> int | bytes:
        values = self._fields.get(number)
        return values[-1] if values else default


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    content = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    return varint(number << 3 | _DELIMITED) + delimited(content)
