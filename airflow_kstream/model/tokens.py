"""Delegation tokens as values: how long a cluster lets them live, and what an identifier says."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.errors import InvalidInput


@dataclass(frozen=True)
class TokenLifetimes:
    """What a NameNode grants: each renewal lasts `renew_interval`, none goes beyond `max_lifetime` after issue.

    `dfs.namenode.delegation.token.renew-interval` and `.max-lifetime`; 1 day and 7 days by Hadoop's defaults.
    """

    renew_interval: timedelta
    max_lifetime: timedelta


@dataclass(frozen=True)
class DelegationToken:
    """The readable part of a Hadoop delegation token. The password is not kept."""

    owner: str
    renewer: str
    real_user: str
    issued: datetime
    max_date: datetime
    sequence_number: int

    @classmethod
    def from_url_string(cls, text: str) -> DelegationToken:
        """Decode `Token.encodeToUrlString()`: base64url of VInt identifier, password, Text kind, Text service.

        Raise InvalidInput when the text is no such token; the text itself is never part of the error.
        """
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            return _identifier(_Reader(raw).sized())
        except (binascii.Error, IndexError, UnicodeDecodeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"not a Hadoop delegation token ({type(error).__name__})") from None


def _identifier(raw: bytes) -> DelegationToken:
    """AbstractDelegationTokenIdentifier.readFields: version 0, three Texts, two VLongs, two VInts."""
    reader = _Reader(raw)
    if reader.byte() != 0:
        raise ValueError("unknown identifier version")
    owner, renewer, real_user = (reader.sized().decode() for _ in range(3))
    issued, max_date = (datetime.fromtimestamp(reader.vlong() / 1000, UTC) for _ in range(2))
    return DelegationToken(owner, renewer, real_user, issued, max_date, sequence_number=reader.vlong())


class _Reader:
    """WritableUtils' variable-length integers and the byte runs that they measure."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def byte(self) -> int:
        value = self._raw[self._at]
        self._at += 1
        return value

    def run(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._raw):
            raise ValueError("truncated")
        self._at += length
        return self._raw[self._at - length : self._at]

    def vlong(self) -> int:
        first = self.byte()
        first = first - 256 if first > 127 else first
        if first >= -112:
            return first
        negative = first < -120
        magnitude = int.from_bytes(self.run(-(first + 120) if negative else -(first + 112)), "big")
        return ~magnitude if negative else magnitude

    def sized(self) -> bytes:
        return self.run(self.vlong())
