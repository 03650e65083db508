"""The server's key that a ticket is sealed with, read from its DER (RFC 4120, 5.3 and 5.9).

    Ticket        ::= [APPLICATION 1] SEQUENCE { tkt-vno [0], realm [1], sname [2], enc-part [3] EncryptedData }
    EncryptedData ::= SEQUENCE { etype [0] Int32, kvno [1] UInt32 OPTIONAL, cipher [2] OCTET STRING }

Nothing is decrypted. Some KDCs leave the kvno out.
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_kstream.model.errors import CredentialError

_APPLICATION_1, _SEQUENCE, _INTEGER = 0x61, 0x30, 0x02
_ENC_PART, _ETYPE, _KVNO = 0xA3, 0xA0, 0xA1
_MULTI_BYTE_TAG = 0x1F
_LONG_FORM = 0x80
# A length that takes more bytes than this would not fit into memory.
_LENGTH_BYTES = 4


class TicketKey(NamedTuple):
    """The key's version, None if the KDC leaves it out, and its encryption type by number."""

    kvno: int | None
    enctype: int


def ticket_key(der: bytes) -> TicketKey:
    """Read the key from a ticket. Raises CredentialError: when the bytes are not a ticket. Raises nothing else."""
    ticket = _fields(_only(_only(der, _APPLICATION_1), _SEQUENCE))
    sealed = _fields(_only(_named(ticket, _ENC_PART), _SEQUENCE))
    kvno = _integer(sealed[_KVNO]) & 0xFFFFFFFF if _KVNO in sealed else None
    return TicketKey(kvno, _integer(_named(sealed, _ETYPE)))


def _integer(der: bytes) -> int:
    return int.from_bytes(_only(der, _INTEGER), "big", signed=True)


def _only(der: bytes, tag: int) -> bytes:
    """Return the content of the single element that these bytes are."""
    actual, content, rest = _element(der)
    if actual != tag or rest:
        raise _broken(f"tag {tag:#x} is expected, not {actual:#x}" if actual != tag else "it goes on behind its end")
    return content


def _fields(der: bytes) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    while der:
        tag, content, der = _element(der)
        fields[tag] = content
    return fields


def _named(fields: dict[int, bytes], tag: int) -> bytes:
    if tag not in fields:
        raise _broken(f"the field with tag {tag:#x} is missing")
    return fields[tag]


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Split off the first element: return its tag, its content and the bytes after it."""
    if len(der) < 2:
        raise _broken("it ends within an element")
    tag, length, start = der[0], der[1], 2
    if tag & _MULTI_BYTE_TAG == _MULTI_BYTE_TAG:
        raise _broken(f"no Kerberos message has tag {tag:#x}")
    if length & _LONG_FORM:
        size = length & ~_LONG_FORM
        if not 1 <= size <= _LENGTH_BYTES:
            raise _broken(f"a length of {size} bytes")
        start += size
        length = int.from_bytes(der[2:start], "big")
    end = start + length
    if end > len(der):
        raise _broken("it ends within an element")
    return tag, der[start:end], der[end:]


def _broken(why: str) -> CredentialError:
    return CredentialError(f"this is not a Kerberos ticket: {why}")
