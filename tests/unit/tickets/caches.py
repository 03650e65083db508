"""Ticket caches in libkrb5's file format 4, written without a KDC: no server accepts their tickets."""

from __future__ import annotations

import struct
from datetime import datetime
from pathlib import Path

# A ticket in DER, sealed with an AES key (RFC 4120, 5.3).
_SEALED = bytes.fromhex("61233021a003020105a1031b0152a2023000a311300fa003020112a2080406736563726574")
_AES256, _NAME_TYPE, _RENEWABLE = 18, 1, 0x00800000


def write_cache(path: Path, principal: str, start: datetime, expiry: datetime, renew_until: datetime) -> None:
    """Replace `path` with a cache of this principal that holds one renewable ticket-granting ticket."""
    realm = principal.rpartition("@")[2]
    times = [int(moment.timestamp()) for moment in (start, start, expiry, renew_until)]
    credential = (
        _principal(principal)
        + _principal(f"krbtgt/{realm}@{realm}")
        + struct.pack(">H", _AES256)
        + _sized(bytes(32))
        + struct.pack(">4I?III", *times, False, _RENEWABLE, 0, 0)
        + _sized(_SEALED)
        + _sized(b"")
    )
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_bytes(b"\x05\x04" + struct.pack(">H", 0) + _principal(principal) + credential)
    fresh.replace(path)


def _principal(name: str) -> bytes:
    parts, _, realm = name.rpartition("@")
    components = parts.split("/")
    joined = b"".join(_sized(part.encode()) for part in (realm, *components))
    return struct.pack(">II", _NAME_TYPE, len(components)) + joined


def _sized(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content
