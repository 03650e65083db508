"""Names of caches, which ticket counts, and which key a ticket is sealed with."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.formats.ticket import TicketKey, ticket_key
from airflow_kstream.model.kerberos.ticket import cache_file_name
from tests.simulated.tickets import WITH_KVNO, write_cache

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


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a cache whose ticket no KDC made; libkrb5 reads it as any other."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    write_cache(tmp_path / "cache", "streamer/edge.test@R", now, now + timedelta(hours=1), now + timedelta(days=1))
    assert tickets.inspect(str(tmp_path / "cache")).granting
    return tmp_path / "cache"


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_cache_is_read_or_a_clear_error(cache: Path, data: st.DataObject) -> None:
    """Never a crash, never a hang: bytes flipped, cut off and doubled anywhere."""
    whole, written = cache.read_bytes(), cache.with_name("damaged")
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    for _ in range(data.draw(st.integers(1, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 127, 128, 255]))
    written.write_bytes(damaged + data.draw(st.sampled_from([b"", b"\0" * 9, whole])))
    try:
        tickets.inspect(str(written))
    except CredentialError as error:
        assert "read the ticket cache" in str(error)  # noqa: PT017  there may be none
