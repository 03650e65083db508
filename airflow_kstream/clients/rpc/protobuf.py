"""The wire format of Protocol Buffers, as far as Hadoop's RPC needs it: numbers, texts and messages by field number.

The field numbers are those of Hadoop's .proto files, which are frozen. Generated classes would tie the package to one
major version of the protobuf runtime, inside an Airflow that brings its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Value = int | str | bytes
_VARINT, _FIXED_64, _DELIMITED, _FIXED_32 = 0, 1, 2, 5
_FIXED = {_FIXED_64: 8, _FIXED_32: 4}
_MASK_64 = (1 << 64) - 1


class Malformed(ValueError):
    """These bytes are no message."""


def encode(fields: Mapping[int, Value | Sequence[Value]]) -> bytes:
    """A message. A message within it is given as its bytes, a repeated field as a list; negative numbers are int64."""
    parts: list[bytes] = []
    for number, value in fields.items():
        values = (value,) if isinstance(value, int | str | bytes) else value
        parts.extend(_field(number, each) for each in values)
    return b"".join(parts)


def delimited(message: bytes) -> bytes:
    """The message with its length in front."""
    return varint(len(message)) + message


def split_delimited(data: bytes) -> Iterator[bytes]:
    """The messages that stand in `data` one behind the other, each with its length in front."""
    position = 0
    while position < len(data):
        start, end = _span(data, position)
        yield data[start:end]
        position = end


def varint(number: int) -> bytes:
    number &= _MASK_64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """As the types sint32 and sint64 want it."""
    return (number << 1) ^ (number >> 63)


class Message:
    """The fields of a message, by number. Of a field that is there twice the last one counts, unless all are asked for.

    What is asked for under another type than it was sent, and bytes that are no message, raise Malformed.
    """

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        for number, value in _parse(data):
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def number(self, number: int, default: int = 0) -> int:
        value = self._last(number, default)
        if not isinstance(value, int):
            raise Malformed(f"field {number} is no number")
        return value

    def signed(self, number: int, default: int = 0) -> int:
        """A number of type int32 or int64."""
        value = self.number(number, default)
        return value - (1 << 64) if value >> 63 else value

    def data(self, number: int) -> bytes:
        value = self._last(number, b"")
        if isinstance(value, int):
            raise Malformed(f"field {number} is a number")
        return value

    def text(self, number: int) -> str:
        """What is no UTF-8 comes through as it is, for `encode` to send it back."""
        return self.data(number).decode(errors="surrogateescape")

    def message(self, number: int) -> Message:
        """An empty one where there is none."""
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


def _parse(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _read_varint(data, position)
            yield number, value
            continue
        start, position = _content(data, position, wire)
        yield number, data[start:position]


def _content(data: bytes, position: int, wire: int) -> tuple[int, int]:
    if wire == _DELIMITED:
        return _span(data, position)
    end = position + _FIXED.get(wire, len(data) + 1)
    if end > len(data):
        raise Malformed(f"a field of wire type {wire} at byte {position} of {len(data)}")
    return position, end


def _span(data: bytes, position: int) -> tuple[int, int]:
    length, start = _read_varint(data, position)
    if start + length > len(data):
        raise Malformed(f"{length} bytes are announced where {len(data) - start} are left")
    return start, start + length


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for index in range(position, min(position + 10, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK_64, index + 1
        shift += 7
    raise Malformed(f"a number breaks off at byte {position} of {len(data)}")
