"""The wire format against the protobuf runtime itself, and servers that are no NameNodes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.formats.protobuf import (
    Malformed,
    Message,
    delimited,
    encode,
    fields,
    split_delimited,
    zigzag,
)
from tests.simulated.hadoop_rpc import Every, namenode, server_that_says

UNSIGNED = st.integers(0, 2**64 - 1)

SIGNED = st.integers(-(2**63), 2**63 - 1)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(UNSIGNED, SIGNED, st.integers(-(2**31), 2**31 - 1), st.booleans(), TEXTS, st.lists(st.binary()))
def test_what_is_encoded_is_what_protobuf_reads(
    unsigned: int, signed: int, zig: int, flag: bool, text: str, data: list[bytes]
) -> None:
    children = [encode({6: content}) for content in data]
    read = Every.FromString(encode({1: unsigned, 2: signed, 3: zigzag(zig), 4: flag, 5: text, 7: children}))
    assert (read.unsigned, read.signed, read.zigzag, read.flag, read.text) == (unsigned, signed, zig, flag, text)
    assert [child.data for child in read.children] == data


@given(UNSIGNED, SIGNED, st.booleans(), TEXTS, st.binary(), st.lists(TEXTS))
def test_what_protobuf_writes_is_what_is_read(
    unsigned: int, signed: int, flag: bool, text: str, data: bytes, texts: list[str]
) -> None:
    """The reader skips fields that it does not need, of any type."""
    children = [Every(text=each) for each in texts]
    written = Every(
        unsigned=unsigned, signed=signed, flag=flag, text=text, data=data, children=children, fixed=7, double=0.5
    )
    message = Message(written.SerializeToString())
    assert (message.number(1), message.signed(2), bool(message.number(4))) == (unsigned, signed, flag)
    assert (message.text(5), message.data(6)) == (text, data)
    assert [child.text(5) for child in message.messages(7)] == texts


@given(st.binary())
def test_bytes_that_are_no_message_are_refused_in_one_way(data: bytes) -> None:
    try:
        message = Message(data)
        for number in range(16):
            message.messages(number)
    except Malformed:
        return
    assert message.number(99, default=5) == 5


@given(st.lists(st.binary(), max_size=5), st.integers(1, 3))
def test_messages_stand_one_behind_the_other_and_a_missing_end_is_noticed(parts: list[bytes], cut: int) -> None:
    together = b"".join(map(delimited, parts))
    assert list(split_delimited(together)) == parts
    if parts and len(parts[-1]) >= cut:
        with pytest.raises(Malformed):
            list(split_delimited(together[:-cut]))


@given(st.binary(min_size=1))
def test_a_name_that_is_no_unicode_comes_back_as_it_went(name: bytes) -> None:
    text = Message(encode({2: name})).text(2)
    assert Message(encode({2: text})).data(2) == name


@given(st.binary(max_size=40), st.integers(0, 10), st.integers(0, 10))
def test_a_message_in_a_file_reads_as_the_same_message_alone(data: bytes, before: int, after: int) -> None:
    """The bytes around it are neither read nor counted, and its offsets are those in the file."""
    file = b"\x80" * before + data + b"\x08" * after
    assert places(file, before, before + len(data)) == [
        (number, slice(value.start + before, value.stop + before) if isinstance(value, slice) else value)
        for number, value in places(data, 0, len(data))
    ]


def places(data: bytes, at: int, end: int) -> list[tuple[int, int | slice]]:
    """Return the places of fields up to the first byte that makes no sense."""
    found = []
    with suppress(Malformed):
        for field in fields(data, at, end, "it"):
            found.append(field)  # noqa: PERF402  those before the error count
    return found


@given(st.binary(max_size=200), st.booleans())
def test_whatever_a_server_says_ends_in_one_of_our_errors(answer: bytes, framed: bool) -> None:
    with (
        server_that_says(len(answer).to_bytes(4) + answer if framed else answer) as strange,
        pytest.raises(KstreamError, match=strange),
    ):
        namenode(strange).closed(["/file"])
