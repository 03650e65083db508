"""Keytabs, the KDC's view of their principals, and the findings from both. None of these values holds a key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_kstream.model.finding import Severity


# Numbers of RFC 3961, 3962, 4757, 6803 and 8009 by the names that MIT Kerberos prints.
ENCTYPES = {
    1: "des-cbc-crc",
    3: "des-cbc-md5",
    16: "des3-cbc-sha1",
    17: "aes128-cts-hmac-sha1-96",
    18: "aes256-cts-hmac-sha1-96",
    19: "aes128-cts-hmac-sha256-128",
    20: "aes256-cts-hmac-sha384-192",
    23: "arcfour-hmac",
    24: "arcfour-hmac-exp",
    25: "camellia128-cts-cmac",
    26: "camellia256-cts-cmac",
}


def enctype_name(number: int) -> str:
    return ENCTYPES.get(number, f"enctype {number}")


@dataclass(frozen=True)
class KeytabEntry:
    """One key of one principal. `digest` is a one-way hash to tell keys apart; `stamped` is by the writer's clock."""

    principal: str
    kvno: int
    enctype: int
    stamped: datetime | None
    digest: str = field(repr=False)


@dataclass(frozen=True)
class KeyVersion:
    """The version of a principal's key: enough to tell that two processes use different keys."""

    kvno: int
    fingerprint: str
    stamped: datetime | None = None

    def differs_from(self, other: KeyVersion) -> bool:
        return self.fingerprint != other.fingerprint

    def succeeds(self, other: KeyVersion) -> bool:
        """Return True if this key is newer than the other one: an older keytab that was put back is not a rotation.

        A higher number tells, and with a lower one a later moment at which it was written: a principal that was deleted
        and made again begins with 1 again, and a keytab that is written by hand has any number. Only the KDC can tell
        that a keytab which `ktutil` copied is an old one.
        """
        if not self.differs_from(other):
            return False
        later = bool(self.stamped and other.stamped and self.stamped > other.stamped)
        return self.kvno >= other.kvno or later


@dataclass(frozen=True)
class KeytabFile:
    """A keytab file. `mode` is its permission bits, `owner` its user's name or number."""

    path: str
    mode: int
    owner: str
    entries: tuple[KeytabEntry, ...]

    @property
    def principals(self) -> tuple[str, ...]:
        return tuple(sorted({entry.principal for entry in self.entries}))

    def newest(self, principal: str) -> tuple[KeytabEntry, ...]:
        """Return the principal's keys of the highest version, one per enctype: those that a login uses."""
        mine = [entry for entry in self.entries if entry.principal == principal]
        highest = max((entry.kvno for entry in mine), default=None)
        return tuple(entry for entry in mine if entry.kvno == highest)

    def has(self, principal: str, kvno: int) -> bool:
        """Return whether it has a key of the principal with this number, the newest or not."""
        return any((entry.principal, entry.kvno) == (principal, kvno) for entry in self.entries)

    def version(self, principal: str) -> KeyVersion | None:
        """Return the principal's newest key version, None if the file has no key for it."""
        newest = self.newest(principal)
        if not newest:
            return None
        together = "".join(sorted(entry.digest for entry in newest))
        stamped = max((entry.stamped for entry in newest if entry.stamped), default=None)
        # Short on purpose: claims contain it only to tell two keys apart.
        return KeyVersion(newest[0].kvno, hashlib.sha256(together.encode()).hexdigest()[:8], stamped)


class LoginResult(StrEnum):
    """The KDC's answer to a login with the keytab's key."""

    ACCEPTED = "accepted"
    KEY_REFUSED = "key refused"
    NO_KEY = "no usable key in the keytab"
    UNKNOWN = "principal unknown"
    EXPIRED = "principal expired"
    LOCKED = "principal locked"
    PASSWORD_EXPIRED = "password expired"
    ENCTYPES_REFUSED = "enctypes refused"
    SKEWED = "clocks differ"
    UNREACHABLE = "KDC unreachable"
    REFUSED = "refused"

    @property
    def lasting(self) -> bool:
        """Return True if every further login with that key fails until something is changed."""
        return self not in {LoginResult.ACCEPTED, LoginResult.UNREACHABLE, LoginResult.SKEWED}


@dataclass(frozen=True)
class KdcStatus:
    """The answers of the realm's KDC about a principal; None means unknown.

    `detail` has the KDC's own words. `kvno` is that of the principal's current key; `kvno_unknown` says why it is
    unknown. `refused_enctypes` are those of the keytab that the KDC no longer accepts for this principal. `offset` is
    the KDC's clock minus this host's.
    """

    login: LoginResult
    detail: str = ""
    kvno: int | None = None
    kvno_unknown: str = ""
    refused_enctypes: tuple[int, ...] = ()
    salt: bytes | None = None
    offset: timedelta | None = None


class FindingKind(StrEnum):
    UNREADABLE = "unreadable"
    OPEN_TO_OTHERS = "open to others"
    NO_ENTRY = "no entry"
    BEHIND = "kvno behind"
    AHEAD = "kvno ahead"
    KEY_REFUSED = "key refused"
    UNKNOWN = "principal unknown"
    EXPIRED = "principal expired"
    LOCKED = "principal locked"
    PASSWORD_EXPIRED = "password expired"
    ENCTYPES_REFUSED = "enctypes refused"
    SALT = "salt not the default"
    CLOCK = "clock skew"
    UNREACHABLE = "KDC unreachable"
    REFUSED = "refused"
    KVNO_NOT_LEARNED = "kvno not learned"
    OLD_KEY_RUNS = "streams with an old key"
    STREAMS_NOT_KNOWN = "streams not known"


@dataclass(frozen=True)
class KeytabFinding:
    kind: FindingKind
    severity: Severity
    words: str
    remedy: str = ""
