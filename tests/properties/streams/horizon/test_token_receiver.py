"""What a driver takes for a credentials file, and which pushes it answers, without its JVM."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_kstream.jobs.kstream_tokens import Push, Refused, services_of, unanswered
from airflow_kstream.model.formats.token import SecretBytes, written_vint
from airflow_kstream.model.kerberos.credentials_file import FreshToken, HadoopCredentials, credentials_file
from airflow_kstream.model.streams.contract import applied_marker, push_file, pushes, refused_marker, tokens_file
from airflow_kstream.model.streams.token_push import TokenPush

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PUSH = TokenPush(3, 1_767_225_600_123, NOW + timedelta(days=1))
TEST = TokenPush(3, 1_767_225_600_001)


def token(service: str = "ha-hdfs:prod", identifier: bytes = b"i" * 80, password: bytes = b"p" * 20) -> FreshToken:
    return FreshToken("hdfs://prod", service, identifier, SecretBytes(password), NOW)


def file(*tokens: FreshToken) -> bytes:
    return credentials_file(tokens).reveal()


@given(st.lists(st.tuples(st.text(min_size=1, max_size=300), st.binary(max_size=400)), min_size=1, max_size=4))
def test_what_the_supervisor_writes_is_read_by_its_services(parts: list[tuple[str, bytes]]) -> None:
    tokens = [token(service, identifier) for service, identifier in parts]
    written = file(*tokens)
    assert [*services_of(written)] == [each.service for each in tokens]
    read = HadoopCredentials.read(SecretBytes(written)).tokens
    assert [(one.alias, one.service) for one in read] == [(each.service, each.service) for each in tokens]


@given(st.binary(max_size=200))
@example(b"HDTS\0\x01\x8f\xff")
@example(b"HDTS\0\x8c\x7f\xff\xff\xff")
def test_garbage_is_refused_and_nothing_else_happens(content: bytes) -> None:
    with pytest.raises(Refused):
        [*services_of(content)]
    with pytest.raises(Refused):
        [*services_of(b"HDTS\0" + content + b"\x07")]


@given(st.data())
def test_a_file_that_was_cut_or_is_longer_is_refused(data: st.DataObject) -> None:
    whole = file(token(), token("ha-hdfs:other"))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for content in (cut, whole + b"\0"):
        with pytest.raises(Refused):
            [*services_of(content)]


def test_a_token_by_another_name_than_its_service_is_refused() -> None:
    """A client of a NameNode pair would go on with its old one (HDFS-9276)."""
    renamed = file(token()).replace(b"ha-hdfs:prod", b"ha-hdfs:mine", 1)
    with pytest.raises(Refused, match="name in the credentials file is not its service"):
        [*services_of(renamed)]


def test_secret_keys_beside_the_tokens_are_refused() -> None:
    key = written_vint(1) + written_vint(3) + b"key" + written_vint(2) + os.urandom(2)
    with pytest.raises(Refused, match="holds more than tokens"):
        [*services_of(file(token())[:-1] + key)]


def test_driver_and_supervisor_name_the_files_of_a_push_alike() -> None:
    (test, push) = unanswered({push_file(PUSH), push_file(TEST)}, 3)
    assert (test.brings_tokens, push.brings_tokens) == (False, True)
    assert push.file == tokens_file(PUSH)
    answers = {push_file(PUSH), push_file(TEST), push.applied, test.refused}
    assert {push.applied, test.refused} == {applied_marker(PUSH), refused_marker(TEST)}
    known = pushes(answers, 3)
    assert (set(known.applied), set(known.refused)) == ({PUSH.id}, {TEST.id})


def test_only_unanswered_pushes_to_its_own_generation_are_its_work() -> None:
    earlier = TokenPush(2, PUSH.id, PUSH.until)
    names = {push_file(PUSH), push_file(TEST), push_file(earlier), applied_marker(TEST), "gen-000003", "push-x"}
    assert unanswered(names, 3) == [Push(3, PUSH.id, int((NOW + timedelta(days=1)).timestamp()))]
