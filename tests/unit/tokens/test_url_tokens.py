"""Delegation tokens in their URL form."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.tokens import DelegationToken


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


def vlong(value: int) -> bytes:
    """Write as WritableUtils.writeVLong does, for values that need 1 to 8 bytes."""
    if -112 <= value <= 127:
        return bytes([value % 256])
    size = (value.bit_length() + 7) // 8
    return bytes([(-112 - size) % 256]) + value.to_bytes(size, "big")


def url_string(identifier: bytes, password: bytes = b"\x07secret") -> str:
    runs = vlong(len(identifier)) + identifier + vlong(len(password)) + password
    raw = runs + text("HDFS_DELEGATION_TOKEN") + text("ha-hdfs:prod")
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def test_an_identifier_says_whose_it_is_and_how_long_it_lives() -> None:
    issued, ends = 1_767_225_600_000, 1_767_830_400_000
    people = text("streamer@EXAMPLE.COM") + text("yarn") + text("gateway")
    token = DelegationToken.from_url_string(
        url_string(b"\x00" + people + vlong(issued) + vlong(ends) + vlong(42) + vlong(2))
    )
    assert token == DelegationToken(
        owner="streamer@EXAMPLE.COM",
        renewer="yarn",
        real_user="gateway",
        issued=datetime.fromtimestamp(issued / 1000, UTC),
        max_date=datetime.fromtimestamp(ends / 1000, UTC),
        sequence_number=42,
        master_key_id=2,
    )


def test_text_that_is_not_even_base64_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a Hadoop delegation token"):
        DelegationToken.from_url_string("what?")
