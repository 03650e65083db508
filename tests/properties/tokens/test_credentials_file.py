"""Credentials files: every field comes back as it was written, and nothing secret does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials, SecretKey, TokenFormat
from airflow_kstream.model.kerberos.tokens import Identifier
from tests.simulated.hadoop_writers import (
    Written,
    url_string,
)
from tests.simulated.token_cases import (
    FORMATS,
    WRITERS,
    names,
    tokens,
)


@FORMATS
@given(given_tokens=st.lists(tokens(), max_size=5), secrets=st.lists(st.tuples(names, st.binary(max_size=300))))
def test_every_field_of_every_kind_comes_back_as_it_was_written(
    form: TokenFormat, given_tokens: list[tuple[Written, Identifier]], secrets: list[tuple[str, bytes]]
) -> None:
    content = SecretBytes(WRITERS[form]([token for token, _ in given_tokens], secrets))
    credentials = HadoopCredentials.read(content)
    assert credentials.format is form
    assert credentials.secret_keys == tuple(SecretKey(alias, len(secret)) for alias, secret in secrets)
    assert len(credentials.tokens) == len(given_tokens)
    for token, (written, identifier) in zip(credentials.tokens, given_tokens, strict=True):
        assert (token.alias, token.kind, token.service) == (written.alias, written.kind, written.service)
        assert token.identifier == identifier
        assert credentials.url_string(content, token).reveal().decode() == url_string(written)


@given(tokens())
def test_a_token_in_its_url_form_comes_back_too_padded_or_not(written: tuple[Written, Identifier]) -> None:
    token, identifier = written
    for padding in ("", "=" * (-len(url_string(token)) % 4), "\n"):
        content = SecretBytes((url_string(token) + padding).encode())
        credentials = HadoopCredentials.read(content)
        assert (credentials.format, credentials.tokens[0].identifier) == (TokenFormat.URL_STRING, identifier)
        assert credentials.url_string(content, credentials.tokens[0]).reveal().decode() == url_string(token)
