"""Tokens and credentials files as Hadoop writes them: WritableUtils, Credentials, Security.proto, written once more."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.kerberos.tokens import AttemptToken, DelegationToken, Identifier, KafkaToken

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Written:
    """The fields that a file has for one token."""

    alias: str
    kind: str
    service: str
    identifier: bytes
    password: bytes


# WritableUtils


def vlong(value: int) -> bytes:
    if -112 <= value <= 127:
        return value.to_bytes(1, "big", signed=True)
    magnitude, mark = (value, -112) if value >= 0 else (~value, -120)
    size = (magnitude.bit_length() + 7) // 8
    return (mark - size).to_bytes(1, "big", signed=True) + magnitude.to_bytes(size, "big")


def sized(run: bytes) -> bytes:
    return vlong(len(run)) + run


def text(value: str) -> bytes:
    return sized(value.encode())


# Protocol Buffers


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    run = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + sized_varint(run)


def sized_varint(run: bytes) -> bytes:
    return varint(len(run)) + run


# Identifiers


def millis(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def writable(token: DelegationToken) -> bytes:
    people = b"".join(map(text, (token.owner, token.renewer, token.real_user)))
    dates = vlong(millis(token.issued)) + vlong(millis(token.max_date))
    return b"\x00" + people + dates + vlong(token.sequence_number) + vlong(token.master_key_id)


def yarn(token: DelegationToken) -> bytes:
    dates = ((4, millis(token.issued)), (5, millis(token.max_date)))
    people = ((1, token.owner), (2, token.renewer), (3, token.real_user))
    return message(*people, *dates, (6, token.sequence_number), (7, token.master_key_id))


def attempt(token: AttemptToken) -> bytes:
    _, timestamp, number, count = token.attempt.split("_")
    application = message((1, int(number)), (2, int(timestamp)))
    return message((1, message((1, application), (2, int(count)))), (2, token.master_key_id))


WRITABLE_KINDS = (
    "HDFS_DELEGATION_TOKEN",
    "WEBHDFS delegation",
    "SWEBHDFS delegation",
    "HIVE_DELEGATION_TOKEN",
    "kms-dt",
    "MR_DELEGATION_TOKEN",
)
YARN_KINDS = ("RM_DELEGATION_TOKEN", "TIMELINE_DELEGATION_TOKEN")


def identifier_bytes(kind: str, identifier: Identifier) -> bytes:
    match identifier:
        case DelegationToken():
            return yarn(identifier) if kind in YARN_KINDS else writable(identifier)
        case AttemptToken():
            return attempt(identifier)
        case KafkaToken():
            return identifier.token_id.encode()
    raise AssertionError("an opaque identifier has no fields to be written from")


# Files


def token_writable(token: Written) -> bytes:
    return sized(token.identifier) + sized(token.password) + text(token.kind) + text(token.service)


def url_string(token: Written) -> str:
    return base64.urlsafe_b64encode(token_writable(token)).decode().rstrip("=")


def java_file(tokens: Sequence[Written], secrets: Iterable[tuple[str, bytes]] = ()) -> bytes:
    secrets = tuple(secrets)
    body = b"".join(text(token.alias) + token_writable(token) for token in tokens)
    keys = b"".join(text(alias) + sized(secret) for alias, secret in secrets)
    return b"HDTS\x00" + vlong(len(tokens)) + body + vlong(len(secrets)) + keys


def protobuf_file(tokens: Sequence[Written], secrets: Iterable[tuple[str, bytes]] = ()) -> bytes:
    entries = [(1, message((1, token.alias), (2, _token_proto(token)))) for token in tokens]
    entries += [(2, message((1, alias), (3, secret))) for alias, secret in secrets]
    body = message(*entries)
    return b"HDTS\x01" + sized_varint(body)


def _token_proto(token: Written) -> bytes:
    return message((1, token.identifier), (2, token.password), (3, token.kind), (4, token.service))
