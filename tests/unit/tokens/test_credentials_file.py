"""Credentials files: every field comes back as it was written, and nothing secret does."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_kstream.clients.local import credential_files
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.kerberos.credentials_file import SecretKey, TokenFormat
from airflow_kstream.model.kerberos.tokens import Opaque, Token
from tests.simulated.hadoop_writers import (
    Written,
    identifier_bytes,
    java_file,
    message,
    protobuf_file,
    url_string,
    writable,
)
from tests.simulated.token_cases import (
    FORMATS,
    HDFS,
    HERS,
    PASSWORD,
    SECRETS,
    WRITERS,
    private,
    read,
    shown,
)


@FORMATS
def test_the_same_tokens_are_equal_wherever_they_lie(form: TokenFormat) -> None:
    alone, last = read(WRITERS[form]([HDFS])), read(WRITERS[form]([HDFS, HDFS], SECRETS))
    assert alone.tokens[0] == last.tokens[1] == Token("ha-hdfs:prod", HDFS.kind, HDFS.service, HERS, slice(0), slice(0))


def test_an_rm_token_of_before_hadoop_2_6_is_read_in_its_old_format() -> None:
    old = Written("rm", "RM_DELEGATION_TOKEN", "127.0.0.1:8032", writable(HERS), PASSWORD)
    assert read(java_file([old])).tokens[0].identifier == HERS


def test_fields_that_a_later_hadoop_may_add_do_no_harm() -> None:
    later = identifier_bytes("RM_DELEGATION_TOKEN", HERS) + message((99, "later"), (98, 7))
    token = Written("rm", "RM_DELEGATION_TOKEN", "127.0.0.1:8032", later, PASSWORD)
    assert read(protobuf_file([token])).tokens[0].identifier == HERS


@FORMATS
@pytest.mark.parametrize("kind", ["HBASE_AUTH_TOKEN", "OzoneToken", "of tomorrow", ""])
def test_a_kind_that_nobody_knows_is_a_kind_a_service_and_a_number_of_bytes(form: TokenFormat, kind: str) -> None:
    credentials = read(WRITERS[form]([Written("alias", kind, "service", b"\x00" * 33, PASSWORD), HDFS]))
    assert [token.identifier for token in credentials.tokens] == [Opaque(33), HERS]
    assert credentials.tokens[0].max_date is None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return private(tmp_path / "container_tokens", java_file([HDFS], SECRETS))


def test_a_file_tells_its_tokens_and_the_names_of_its_secret_keys(file: Path) -> None:
    content = credential_files.read_credentials(file)
    assert content.credentials.tokens[0].identifier == HERS
    assert content.credentials.secret_keys == (SecretKey("spark.authenticate.secret", 14),)
    assert content.warnings == ()


def test_a_file_that_others_may_read_is_read_with_a_warning(file: Path) -> None:
    file.chmod(0o644)
    assert credential_files.read_credentials(file).warnings == (
        "its mode is 0644: anyone who can enter its folder can use the tokens in it; chmod 600",
    )


def test_what_is_no_file_of_credentials_is_refused_by_name(tmp_path: Path) -> None:
    for path, kind, why in (
        (tmp_path / "nothing", NotFound, "No such file"),
        (private(tmp_path / "plain", b"x") / "below", NotFound, "Not a directory"),
        (tmp_path, InvalidInput, "Is a directory"),
        (private(tmp_path / "large", b"HDTS\x00" + bytes(2 << 20)), InvalidInput, "more than 1048576 bytes"),
        (private(tmp_path / "torn", java_file([HDFS])[:100]), InvalidInput, r"byte \d+: "),
    ):
        with pytest.raises(kind, match=why) as refused:
            credential_files.read_credentials(path)
        assert str(path) in refused.value.message


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="is not a regular file"):
        credential_files.read_credentials(tmp_path / "pipe")


def test_a_token_whose_file_was_replaced_is_not_taken_for_another(file: Path) -> None:
    (token,) = credential_files.read_credentials(file).credentials.tokens
    assert credential_files.url_string(file, token).reveal().decode() == url_string(HDFS)
    private(file, java_file([replace(HDFS, identifier=writable(replace(HERS, sequence_number=43)))]))
    with pytest.raises(CredentialError, match="was replaced meanwhile"):
        credential_files.url_string(file, token)


def test_neither_values_nor_errors_show_a_password_or_a_secret_key(tmp_path: Path) -> None:
    """The test inspects each error as a debugger would: with its causes, and with the variables of every frame."""
    good = credential_files.read_credentials(private(tmp_path / "good", java_file([HDFS], SECRETS)))
    assert not leaks(repr(good), str(good), repr(credential_files.url_string(good.path, good.credentials.tokens[0])))
    for index, content in enumerate(broken_files()):
        path = private(tmp_path / f"broken{index}", content)
        with pytest.raises(KstreamError) as refused:
            credential_files.read_credentials(path)
        assert not leaks(*shown(refused.value)), f"broken file {index}"


def broken_files() -> Iterator[bytes]:
    """Return files that break off after all their secrets."""
    yield java_file([HDFS], SECRETS) + b"!"
    yield java_file([HDFS], SECRETS)[:-1]
    yield java_file([HDFS, HDFS])[:-30]
    yield protobuf_file([HDFS], SECRETS) + b"!"
    yield protobuf_file([HDFS], SECRETS)[:-1]
    yield b"HDTS\x09" + java_file([HDFS], SECRETS)[5:]
    yield url_string(HDFS).encode()[:-9]
    yield url_string(HDFS).encode() + b"?"
    yield url_string(HDFS).encode() + b"AAAA"


def leaks(*texts: str) -> list[str]:
    secrets = (PASSWORD, b"hunter2", *(secret for _, secret in SECRETS))
    spelled = {spelling(secret) for secret in secrets for spelling in SPELLINGS} | {url_string(HDFS)[60:90]}
    return [spelling for spelling in spelled if any(spelling in text for text in texts)]


SPELLINGS: Sequence[Callable[[bytes], str]] = (
    lambda secret: repr(secret)[2:-1],
    lambda secret: secret.hex(),
    lambda secret: base64.b64encode(secret).decode()[:-4],
    lambda secret: secret.decode("latin-1"),
)
