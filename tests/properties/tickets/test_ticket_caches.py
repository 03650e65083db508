"""Names of caches, which ticket counts, and which key a ticket is sealed with."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.formats.ticket import TicketKey, ticket_key
from airflow_kstream.model.ticket import cache_file_name
from tests.unit.tickets.test_ticket_caches import WITH_KVNO

names = st.text(
    st.characters(blacklist_characters="/@", blacklist_categories=("Zs", "Zl", "Zp", "Cc", "Cs")), min_size=1
)


principals = st.builds("{}{}@{}".format, names, st.one_of(st.just(""), names.map("/{}".format)), names)


@given(principals, principals)
def test_each_principal_has_a_file_name_of_its_own(one: str, other: str) -> None:
    assert "/" not in cache_file_name(one)
    assert (cache_file_name(one) == cache_file_name(other)) == (one == other)


@given(st.binary(max_size=200))
@example(b"\x61\x84\xff\xff\xff\xff")
@example(b"\x61\x80")
@example(b"\x7f" * 40)
def test_any_bytes_are_a_key_or_a_clear_error(data: bytes) -> None:
    with suppress(CredentialError):
        assert isinstance(ticket_key(data), TicketKey)


@given(st.integers(0, len(WITH_KVNO) - 1), st.integers(1, 255))
def test_a_ticket_with_a_changed_byte_is_a_key_or_a_clear_error(at: int, flip: int) -> None:
    damaged = bytearray(WITH_KVNO)
    damaged[at] ^= flip
    with suppress(CredentialError):
        assert isinstance(ticket_key(bytes(damaged)), TicketKey)
