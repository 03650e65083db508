"""Delegation tokens in their URL form."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.tokens import DelegationToken


@given(st.binary(max_size=80))
def test_bytes_that_are_no_token_are_refused_without_being_shown(raw: bytes) -> None:
    """A length that no bytes can have cuts the identifier short."""
    encoded = base64.urlsafe_b64encode(b"\x7f" + raw[:100]).decode()
    with pytest.raises(InvalidInput, match="not a Hadoop delegation token") as refused:
        DelegationToken.from_url_string(encoded)
    assert encoded not in str(refused.value)
