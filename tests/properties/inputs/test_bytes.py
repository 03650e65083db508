"""Declarations of any bytes: they are read, or refused in one line that says where and what is allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.clients.local.regular_files import decoded
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.yaml_text import read_mapping


@given(st.binary(max_size=200))
def test_no_bytes_lead_to_anything_but_a_mapping_or_a_refusal(content: bytes) -> None:
    assert "\n" not in _refusal(content)


@given(st.text(alphabet="{}[]:,&*!|>'\"#%-?<~ab\n\t 1.", max_size=60))
def test_no_text_of_yamls_own_characters_is_more_than_refused(text: str) -> None:
    assert "\n" not in _refusal(text.encode())


def _refusal(content: bytes) -> str:
    """Return the reason of the refusal; empty if the bytes are read."""
    try:
        assert isinstance(read_mapping(decoded(content)), dict)
    except InvalidInput as refusal:
        return refusal.message
    return ""
