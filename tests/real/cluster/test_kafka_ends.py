"""Where topics end, from real brokers: what a query that rests leaves unread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from airflow_kstream.clients.kafka import KafkaLogin
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.kafka import KafkaPolicy, backlog

TOPIC = "ends"


@pytest.fixture
def identity(minicluster: Minicluster) -> Identity:
    return Identity(minicluster.principal("streamer"), keytab=str(minicluster.keytab("streamer")))


@pytest.fixture
def brokers(minicluster: Minicluster) -> KafkaPolicy:
    return KafkaPolicy(minicluster.bootstrap_servers)


@contextmanager
def producer(brokers: KafkaPolicy, identity: Identity, **more: object) -> Iterator[KafkaProducer]:
    opened = KafkaProducer(**KafkaLogin(brokers.bootstrap_servers or "", identity).options(), **more)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def topic(brokers: KafkaPolicy, identity: Identity) -> str:
    admin = KafkaAdminClient(**KafkaLogin(brokers.bootstrap_servers or "", identity).options())
    try:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)])
    finally:
        admin.close()
    with producer(brokers, identity) as writer:
        for number in range(5):
            writer.send(TOPIC, b"a record", partition=number % 2).get(30)
    return TOPIC


def test_the_records_that_wait_are_counted(brokers: KafkaPolicy, identity: Identity, topic: str) -> None:
    ends = KafkaEnds(identity)
    planned = {topic: {0: 1, 1: 2}}
    assert ends.of(brokers, planned) == {topic: {0: 3, 1: 2}}
    assert backlog(planned, ends.of(brokers, planned)).records == 2
    with producer(brokers, identity) as writer:
        writer.send(topic, b"one more", partition=0).get(30)
    assert ends.of(brokers, planned) == {topic: {0: 3, 1: 2}}
    assert KafkaEnds(identity).of(brokers, planned) == {topic: {0: 4, 1: 2}}

    # What a transaction has not committed yet is for no query that reads committed records.
    with producer(brokers, identity, transactional_id="open") as writer:
        writer.init_transactions()
        writer.begin_transaction()
        writer.send(topic, b"not yet", partition=1).get(30)
        assert KafkaEnds(identity).of(brokers, planned)[topic][1] == 2
        writer.abort_transaction()


def test_what_can_not_be_asked_is_an_error_of_ours(minicluster: Minicluster, identity: Identity) -> None:
    here = KafkaPolicy(minicluster.bootstrap_servers)
    nobody = Identity(minicluster.principal("streamer"), keytab="/nonexistent")
    cases: tuple[tuple[Identity, KafkaPolicy, type[KstreamError]], ...] = (
        (nobody, here, CredentialError),
        (identity, KafkaPolicy(), InvalidInput),
        (identity, here, NotFound),
    )
    for who, brokers, error in cases:
        with pytest.raises(error):
            KafkaEnds(who).of(brokers, {"no-such-topic": {0: 1}})


def test_brokers_that_are_away_cost_one_question_a_minute(identity: Identity) -> None:
    ends, away = KafkaEnds(identity), KafkaPolicy("127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        ends.of(away, {TOPIC: {0: 1}})
    began = time.monotonic()
    for number in range(300):
        with pytest.raises(Unavailable):
            ends.of(replace(away), {f"topic-{number}": {0: 1}})
    assert time.monotonic() - began < 1
