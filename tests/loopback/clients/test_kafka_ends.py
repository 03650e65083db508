"""Where topics end, asked of brokers that are away, dark or without a login: an error of ours, and soon."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.kafka import KafkaLogin
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.errors import CredentialError, InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream_policies import KafkaPolicy

NOBODY = Identity("nobody@EXAMPLE.COM", keytab="/nonexistent")
SOON = timedelta(seconds=0.01)


@contextmanager
def dark_broker() -> Iterator[str]:
    """Yield the address of a port that answers nobody: its queue is full, and Linux drops what comes then."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.create_connection(server.getsockname()):
        yield f"127.0.0.1:{server.getsockname()[1]}"


def is_being_asked(broker: str) -> bool:
    """Return whether a connection to it was begun and not answered; 02 is SYN_SENT."""
    port = int(broker.rpartition(":")[2])
    return f" 0100007F:{port:04X} 02 " in Path("/proc/net/tcp").read_text()


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


@pytest.mark.parametrize(
    "broker",
    ["kafka1..example.com:9092", f"{'k' * 64}.example.com:9092", f"{'k.' * 200}example.com:9092", "kafka1"],
    ids=["an empty part", "a long part", "a long name", "no port"],
)
def test_a_broker_that_no_resolver_takes_is_away(broker: str) -> None:
    """Claims of earlier releases are read without checks."""
    with pytest.raises(Unavailable, match="connect to Kafka"):
        KafkaEnds(NOBODY).of(KafkaPolicy(broker), {"orders": {0: 1}})


def test_many_dark_brokers_cost_no_more_than_a_few() -> None:
    with dark_broker() as dark:
        began = time.monotonic()
        with pytest.raises(Unavailable, match="timed out"):
            KafkaLogin(",".join([dark] * 20), NOBODY).check(within=0.4)
        assert 0.3 < time.monotonic() - began < 1


def test_a_broker_that_lives_is_found_behind_dark_ones() -> None:
    with dark_broker() as dark, socket.create_server(("127.0.0.1", 0)) as living:
        brokers = [*[dark] * 4, f"127.0.0.1:{living.getsockname()[1]}"]
        KafkaLogin(",".join(brokers), NOBODY, security_protocol="PLAINTEXT").check(within=0.5)


def test_who_asks_other_brokers_does_not_wait_for_a_dark_kafka() -> None:
    ends = KafkaEnds(NOBODY)
    with ThreadPoolExecutor() as threads:
        with dark_broker() as dark:
            waiting = threads.submit(ends.of, KafkaPolicy(dark), {"orders": {0: 1}})
            assert until(lambda: is_being_asked(dark) or None, SOON, 300 * SOON)
            with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1: "):
                ends.of(KafkaPolicy("127.0.0.1:1"), {"orders": {0: 1}})
            assert is_being_asked(dark)
        with pytest.raises(Unavailable):
            waiting.result()


def test_a_dark_kafka_is_asked_one_question_at_a_time() -> None:
    ends = KafkaEnds(NOBODY)
    with ThreadPoolExecutor() as threads:
        with dark_broker() as dark:
            asked = [threads.submit(ends.of, KafkaPolicy(dark), {topic: {0: 1}}) for topic in ("orders", "bills")]
            assert until(lambda: is_being_asked(dark) or None, SOON, 300 * SOON)
        assert asked[0].exception() is asked[1].exception(), "the other one was told what the first had found"
