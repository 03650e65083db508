"""Damaged credentials files are reported with the fault and its byte, and do no harm."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.credentials_file import TokenFormat
from airflow_kstream.model.kerberos.tokens import Identifier
from tests.examples import examples
from tests.simulated.hadoop_writers import (
    Written,
    identifier_bytes,
)
from tests.simulated.token_cases import (
    FORMATS,
    HERS,
    SECRETS,
    WRITERS,
    outcome,
    tokens,
)


@settings(max_examples=examples(500))
@given(st.binary(max_size=300), st.sampled_from([b"", b"HDTS", b"HDTS\x00", b"HDTS\x00\x01", b"HDTS\x01"]))
def test_random_bytes_are_refused_or_read_and_never_crash(raw: bytes, start: bytes) -> None:
    outcome(start + raw)


@FORMATS
@settings(max_examples=examples(30))
@given(st.lists(tokens(), min_size=1, max_size=2))
def test_every_truncation_is_refused_with_a_byte_that_the_file_has(
    form: TokenFormat, given_tokens: list[tuple[Written, Identifier]]
) -> None:
    whole = WRITERS[form]([token for token, _ in given_tokens], SECRETS)
    for length in range(len(whole)):
        refused = outcome(whole[:length])
        assert isinstance(refused, InvalidInput), f"{length} of {len(whole)} bytes were read as a whole file"
        place = re.match(r"byte (\d+): ", refused.message)
        assert place, refused.message
        assert int(place[1]) <= length


@FORMATS
def test_every_flip_of_a_byte_is_refused_or_read(form: TokenFormat) -> None:
    """In short words: each further byte costs 256 reads, and one letter of a name is like another.

    The last is YARN's as Hadoop wrote it before 2.6.
    """
    hers = replace(HERS, owner="é", renewer="ya", real_user="g")
    hdfs, yarn = "HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN"
    forms = ((hdfs, hdfs), (yarn, yarn), (yarn, hdfs))
    whole = WRITERS[form]([Written("a1", kind, "h:1", identifier_bytes(like, hers), b"pw") for kind, like in forms])
    for at in range(len(whole)):
        for value in range(256):
            outcome(whole[:at] + bytes([value]) + whole[at + 1 :])
