"""Tickets and their caches in libkrb5's file format 4, written without a KDC: no server accepts them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_kstream.model.kerberos.expiry import ExpiryCheck
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.supervise.tokens.expiry import TokenEnd

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


def der(tag: int, *content: bytes) -> bytes:
    joined = b"".join(content)
    assert len(joined) < 128
    return bytes((tag, len(joined))) + joined


def sealed(*enc_part: bytes) -> bytes:
    version, realm, name = der(0xA0, der(2, b"\x05")), der(0xA1, der(0x1B, b"R")), der(0xA2, der(0x30))
    return der(0x61, der(0x30, version, realm, name, der(0xA3, der(0x30, *enc_part))))


AES256, CIPHER = der(0xA0, der(2, b"\x12")), der(0xA2, der(4, b"secret"))
WITH_KVNO = sealed(AES256, der(0xA1, der(2, b"\x01\x05")), CIPHER)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ticket(life: timedelta) -> Ticket:
    return Ticket("me@R", "krbtgt/R@R", START, START + life, None, frozenset(), "aes256-cts-hmac-sha1-96", 1)


NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def expiring(lefts: list[timedelta]) -> ExpiryCheck[TokenEnd]:
    return ExpiryCheck("tokens", "file /t", HOUR, NOW, [TokenEnd(str(left), NOW + left) for left in lefts])
