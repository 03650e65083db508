"""Keytab files: read as they are written, and refused in words when they are not whole."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.formats.keytab import read_entries
from tests.simulated.keytabs import AES128, AES256, Key, keytab_bytes


@given(st.binary(max_size=300))
def test_any_bytes_are_entries_or_a_credential_error(content: bytes) -> None:
    for prefix in (b"", b"\x05\x02"):
        with suppress(CredentialError):
            read_entries(prefix + content)


@given(st.data())
def test_a_keytab_with_a_changed_byte_is_entries_or_a_credential_error(data: st.DataObject) -> None:
    content = bytearray(keytab_bytes(Key(1), Key(2, AES128)))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CredentialError):
        read_entries(bytes(content))


@given(
    st.lists(
        st.builds(
            Key,
            kvno=st.integers(1, 2**32 - 1),
            enctype=st.sampled_from([AES256, AES128, 23]),
            secret=st.binary(min_size=16, max_size=32),
            stamp=st.integers(1, 2**32 - 1),
        ),
        max_size=5,
    )
)
def test_a_written_keytab_is_read_back(keys: list[Key]) -> None:
    read = read_entries(keytab_bytes(*keys))
    assert [(entry.kvno, entry.enctype) for entry in read] == [(key.kvno, key.enctype) for key in keys]
