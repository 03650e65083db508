"""The bytes of a keytab file, version 0x0502 as MIT and Heimdal document it; keys are digested where they stand.

    file  ::= 0x05 0x02 { size:int32 entry | -size:int32 hole }
    entry ::= components:u16 realm components[] name_type:u32 time:u32 kvno:u8 enctype:u16 key [kvno:u32]

Texts and keys are counted by a u16. The last kvno is there since versions grew beyond 255; 0 means "see the first".
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime

from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.kerberos.keytab import KeytabEntry

_VERSION = b"\x05\x02"
_QUOTED = re.compile(r"([\\/@])")


def read_entries(content: bytes) -> tuple[KeytabEntry, ...]:
    """Parse a keytab. Raises CredentialError: when it is not one; it names the position. Raises nothing else."""
    if content[:2] != _VERSION:
        raise CredentialError("it does not begin like a keytab of version 2, with the bytes 05 02")
    return tuple(_entries(content))


def _entries(content: bytes) -> Iterator[KeytabEntry]:
    at = len(_VERSION)
    while at < len(content):
        size = _Reader(content, at, len(content)).number(">i")
        at += 4
        if size == 0:
            # libkrb5 treats this as the end, too.
            return
        if at + abs(size) > len(content):
            raise CredentialError(f"it is cut off: the entry at byte {at} has {abs(size)} bytes")
        if size > 0:
            yield _entry(_Reader(content, at, at + size))
        at += abs(size)


class _Reader:
    """A reader from front to back between two positions. Raises CredentialError: when the bytes end too early."""

    __slots__ = ("_at", "_content", "_end")

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content, self._at, self._end = content, at, end

    def number(self, kind: str) -> int:
        return int(struct.unpack(kind, self.take(struct.calcsize(kind)))[0])

    def counted(self) -> bytes:
        return self.take(self.number(">H"))

    def text(self) -> str:
        return self.counted().decode("utf-8", "backslashreplace")

    @property
    def left(self) -> int:
        return self._end - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise CredentialError(f"it is corrupt: {count} bytes are expected at byte {self._at}, {self.left} are left")
        self._at += count
        return self._content[self._at - count : self._at]


def _entry(reader: _Reader) -> KeytabEntry:
    count, realm = reader.number(">H"), reader.text()
    principal = "/".join(_quoted(reader.text()) for _ in range(count)) + f"@{_quoted(realm)}"
    reader.take(4)
    stamp, short, enctype = reader.number(">I"), reader.number(">B"), reader.number(">H")
    digest = hashlib.sha256(reader.counted())
    kvno = (reader.number(">I") if reader.left >= 4 else 0) or short
    digest.update(f"{principal} {kvno} {enctype}".encode())
    stamped = datetime.fromtimestamp(stamp, UTC) if stamp else None
    return KeytabEntry(principal, kvno, enctype, stamped, digest.hexdigest()[:16])


def _quoted(part: str) -> str:
    return _QUOTED.sub(r"\\\1", part)
