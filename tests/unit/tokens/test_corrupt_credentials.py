"""Damaged credentials files are reported with the fault and its byte, and do no harm."""

from __future__ import annotations

import re
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from airflow_kstream.clients.local import credential_files
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.tokens import Opaque
from tests.simulated.hadoop_writers import (
    Written,
    java_file,
    message,
    sized,
    sized_varint,
    text,
    vlong,
    writable,
)
from tests.simulated.token_cases import (
    HDFS,
    HERS,
    PASSWORD,
    outcome,
    private,
    read,
)

BROKEN_IDENTIFIERS = {
    "another version": (b"\x03" + writable(HERS)[1:], r"byte 43: the identifier's version is 3"),
    "cut short": (writable(HERS)[:-3], r"byte \d+: "),
    "too long": (writable(HERS) + b"\x00", r"byte \d+: 1 bytes are left over after the identifier"),
    "no text": (b"\x00" + sized(b"\xff\xfe"), "byte 45: the owner is not UTF-8"),
    "no date": (
        b"\x00" + text("a") * 3 + vlong(1 << 62) * 2 + b"\x00\x00",
        "byte 50: the issue date is 4611686018427387904 ms after 1970, which is not a valid date",
    ),
    "no 32 bits": (
        writable(HERS)[:-2] + vlong(1 << 31) + b"\x02",
        r"byte \d+: the sequence number is 2147483648, which is not a 32-bit number",
    ),
    "empty": (b"", r"byte 43: the bytes end before the identifier's version"),
}


@pytest.mark.parametrize("damage", BROKEN_IDENTIFIERS)
def test_an_identifier_that_its_kind_can_not_have_says_why_and_hides_no_other_token(damage: str) -> None:
    raw, why = BROKEN_IDENTIFIERS[damage]
    odd = Written("a" * 35, "HDFS_DELEGATION_TOKEN", "", raw, PASSWORD)
    credentials = read(java_file([odd, HDFS]))
    identifier = credentials.tokens[0].identifier
    assert isinstance(identifier, Opaque)
    assert identifier.byte_count == len(raw)
    assert re.match(why, identifier.why), identifier.why
    assert credentials.tokens[1].identifier == HERS


CORRUPT = {
    "empty": (b"", "byte 0: it is empty"),
    "another file": (b"PAR1....", "byte 0: no HDTS as in a credentials file, and .* it is not base64"),
    "nothing after the magic": (b"HDTS", "byte 4: the bytes end before the format number"),
    "a format to come": (b"HDTS\x02", "byte 4: the format number is 2; known are 0, 1"),
    "tokens that can't be there": (
        b"HDTS\x00" + vlong(1 << 30),
        "byte 5: 1073741824 tokens are announced, but only 0 bytes are left",
    ),
    "fewer than no tokens": (b"HDTS\x00" + vlong(-3), "byte 5: -3 tokens are announced"),
    "a length beyond the end": (
        b"HDTS\x00\x01" + text("alias") + vlong(2_000_000_000),
        "byte 17: the identifier of token 'alias' would have 2000000000 bytes where 0 are left",
    ),
    "a negative length": (
        b"HDTS\x00\x01" + vlong(-5) + b"01234",
        "byte 7: a token's alias would have -5 bytes where 5 are left",
    ),
    "a length of 64 bits": (
        b"HDTS\x00\x01" + vlong(1 << 40) + b"01234",
        "byte 6: the length of a token's alias is 1099511627776, which is not a 32-bit number",
    ),
    "bytes after the end": (java_file([HDFS]) + b"x", r"byte \d+: 1 bytes are left over after the last secret key"),
    "a message without end": (b"HDTS\x01" + b"\xff" * 11, "byte 5: .* is a number of more than 10 bytes"),
    "a message longer than the file": (
        b"HDTS\x01\x7f\x00",
        "byte 6: the credentials would have 127 bytes where 1 are left",
    ),
    "a token without a password": (
        b"HDTS\x01" + sized(message((1, message((1, "a"), (2, message((1, b"i"), (3, "k"), (4, "s"))))))),
        "byte 13: token 'a' lacks its field 2",
    ),
    "a token that is a number": (b"HDTS\x01" + sized(message((1, 5))), "field 1 of the credentials is a number"),
    "a field of no number": (b"HDTS\x01\x02\x00\x00", "byte 6: the credentials has a field of number 0"),
    "a group": (b"HDTS\x01\x01\x0b", "byte 6: field 1 of the credentials is of wire type 3"),
}


@pytest.mark.parametrize("damage", CORRUPT)
def test_a_corrupt_file_is_reported_with_the_fault_and_its_byte(damage: str) -> None:
    content, why = CORRUPT[damage]
    with pytest.raises(InvalidInput) as refused:
        read(content)
    assert re.search(why, refused.value.message), refused.value.message


def test_a_length_that_lies_takes_no_memory() -> None:
    """Each announces two billion bytes, whose allocation would be noticed."""
    for content in (
        b"HDTS\x00" + vlong(2_000_000_000),
        b"HDTS\x00\x01" + vlong(2_000_000_000),
        b"HDTS\x01\x80\x94\xeb\xdc\x07",
    ):
        tracemalloc.start()
        assert isinstance(outcome(content), InvalidInput)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_000_000


@pytest.mark.timeout(30)
@pytest.mark.parametrize("entry", [b"\x12\x00", b"\x1a\x00", b"\x28\x00"])
def test_the_largest_file_that_is_read_at_all_is_refused_or_read_in_seconds(tmp_path: Path, entry: bytes) -> None:
    body = entry * (credential_files.MAX_BYTES // len(entry) - 8)
    crowded = private(tmp_path / "crowded", b"HDTS\x01" + sized_varint(body))
    with suppress(InvalidInput):
        credential_files.read_credentials(crowded)
