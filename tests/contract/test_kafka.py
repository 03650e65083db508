"""Brokers tell a principal with a keytab where topics end for a query, and what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from airflow_kstream.clients.kafka import KafkaLogin
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from tests.live.token_makers import identity

TOPIC = "contract-ends"


@pytest.fixture(scope="module")
def who(minicluster: Minicluster) -> Identity:
    return identity(minicluster, "streamer")


@pytest.fixture(scope="module")
def brokers(minicluster: Minicluster, who: Identity) -> KafkaPolicy:
    """The brokers, with a topic whose two partitions have three records and two."""
    policy = KafkaPolicy(minicluster.bootstrap_servers)
    with closing(KafkaAdminClient(**KafkaLogin(minicluster.bootstrap_servers, who).options())) as admin:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)])
    with producer(policy, who) as writer:
        for number in range(5):
            writer.send(TOPIC, b"a record", partition=number % 2).get(30)
    return policy


@contextmanager
def producer(brokers: KafkaPolicy, who: Identity, **more: object) -> Iterator[KafkaProducer]:
    with closing(KafkaProducer(**KafkaLogin(brokers.bootstrap_servers or "", who).options(), **more)) as opened:
        yield opened


def test_partitions_end_after_their_last_record(brokers: KafkaPolicy, who: Identity) -> None:
    assert KafkaEnds(who).of(brokers, {TOPIC: {0: 1, 1: 2}}) == {TOPIC: {0: 3, 1: 2}}


def test_what_a_transaction_has_not_committed_is_beyond_the_end(brokers: KafkaPolicy, who: Identity) -> None:
    """A query that reads committed records gets none of it, and must not count as behind."""
    with producer(brokers, who, transactional_id="open") as writer:
        writer.init_transactions()
        writer.begin_transaction()
        writer.send(TOPIC, b"not yet", partition=1).get(30)
        assert KafkaEnds(who).of(brokers, {TOPIC: {1: 2}}) == {TOPIC: {1: 2}}
        writer.abort_transaction()


def test_a_topic_that_is_not_there_is_not_found(brokers: KafkaPolicy, who: Identity) -> None:
    with pytest.raises(NotFound):
        KafkaEnds(who).of(brokers, {"no-such-topic": {0: 1}})
