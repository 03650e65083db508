"""Where topics end, asked of brokers that are away or without a login: an error of ours, and soon."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.model.errors import CredentialError, InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream_policies import KafkaPolicy

NOBODY = Identity("nobody@EXAMPLE.COM", keytab="/nonexistent")


def test_brokers_that_are_away_cost_one_question_a_minute() -> None:
    ends, away = KafkaEnds(NOBODY), KafkaPolicy("127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1: ") as first:
        ends.of(away, {"orders": {0: 1}})
    with pytest.raises(Unavailable) as second:
        ends.of(replace(away), {"bills": {0: 1}})
    with pytest.raises(Unavailable) as third:
        ends.at(replace(away), ["orders"], datetime.now(UTC))
    assert second.value is third.value is first.value, "it is told again, and nobody was asked"


def test_an_outage_during_a_question_about_a_moment_is_remembered() -> None:
    ends, away = KafkaEnds(NOBODY), KafkaPolicy("127.0.0.1:1")
    with pytest.raises(Unavailable) as first:
        ends.at(away, ["orders"], datetime.now(UTC))
    with pytest.raises(Unavailable) as second:
        ends.at(replace(away), ["bills"], datetime.now(UTC))
    assert second.value is first.value


def test_a_refusal_is_remembered_of_its_question_alone() -> None:
    ends, nowhere, now = KafkaEnds(NOBODY), KafkaPolicy(), datetime.now(UTC)
    errors = []
    for topic in ("orders", "orders", "bills"):
        with pytest.raises(InvalidInput) as refused:
            ends.at(nowhere, [topic], now)
        errors.append(refused.value)
    assert errors[0] is errors[1]
    assert errors[0] is not errors[2]


def test_a_keytab_that_is_not_there_is_an_error_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(CredentialError):
        KafkaEnds(NOBODY).of(KafkaPolicy(f"127.0.0.1:{listening.getsockname()[1]}"), {"orders": {0: 1}})


def test_without_brokers_no_server_is_asked() -> None:
    with pytest.raises(InvalidInput, match="bootstrap_servers is missing"):
        KafkaEnds(NOBODY).of(KafkaPolicy(), {"orders": {0: 1}})
