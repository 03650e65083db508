"""Keytab files, byte by byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass

AES256, AES128 = 18, 17


@dataclass(frozen=True)
class Key:
    kvno: int
    enctype: int = AES256
    secret: bytes = b"k" * 32
    name: tuple[str, ...] = ("streamer",)
    stamp: int = 1_700_000_000

    def entry(self, *, long_kvno: bool = True) -> bytes:
        parts = b"".join(_counted(part.encode()) for part in ("KSTREAM.TEST", *self.name))
        head = struct.pack(">H", len(self.name)) + parts + struct.pack(">IIB", 1, self.stamp, self.kvno & 0xFF)
        body = head + struct.pack(">H", self.enctype) + _counted(self.secret)
        return body + (struct.pack(">I", self.kvno) if long_kvno else b"")


def _counted(content: bytes) -> bytes:
    return struct.pack(">H", len(content)) + content


def keytab_bytes(*keys: Key, long_kvno: bool = True) -> bytes:
    entries = [key.entry(long_kvno=long_kvno) for key in keys]
    return b"\x05\x02" + b"".join(struct.pack(">i", len(entry)) + entry for entry in entries)
