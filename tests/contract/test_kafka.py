"""Brokers tell a principal with a keytab where topics end for a query, what they had at a moment, what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from airflow_kstream.clients.kafka import KafkaLogin
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.progress import PartitionAt
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


PAST = "contract-past"
SIX = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)


def millis(minutes: int) -> int:
    """Return a producer's timestamp, so many minutes after six."""
    return int((SIX + timedelta(minutes=minutes)).timestamp() * 1000)


def test_each_partition_tells_its_first_record_since_a_moment(
    minicluster: Minicluster, brokers: KafkaPolicy, who: Identity
) -> None:
    """In one nothing came since then, one is empty, one got a record late, and of one the past was deleted.

    A transaction that is open counts from its records on; one that was aborted left a marker, of the broker's own time.
    """
    written = {0: (-20, -10, 0, 5), 1: (-20,), 2: (), 3: (-20, 10, -5), 4: (-20, -10)}
    with closing(KafkaAdminClient(**KafkaLogin(minicluster.bootstrap_servers, who).options())) as admin:
        admin.create_topics([NewTopic(PAST, num_partitions=7, replication_factor=1)])
        with producer(brokers, who) as writer:
            for partition, minutes in written.items():
                for minute in minutes:
                    writer.send(PAST, b"a record", partition=partition, timestamp_ms=millis(minute)).get(30)
        admin.delete_records({TopicPartition(PAST, 4): 2})
        admin.create_partitions({PAST: 8})
    with producer(brokers, who, transactional_id="past") as writer:
        writer.init_transactions()
        writer.begin_transaction()
        writer.send(PAST, b"not yet", partition=5, timestamp_ms=millis(3)).get(30)
        writer.send(PAST, b"never", partition=6, timestamp_ms=millis(-5)).get(30)
        writer.abort_transaction()
        writer.begin_transaction()
        writer.send(PAST, b"not yet", partition=5, timestamp_ms=millis(4)).get(30)
        at = KafkaEnds(who).at(brokers, [PAST, TOPIC], SIX)
        writer.abort_transaction()
    since = {minute: SIX + timedelta(minutes=minute) for minute in (0, 3, 10)}
    past = dict(at.topics[PAST])
    marked = past.pop(6)
    assert (marked.first, marked.end, marked.later) == (0, 2, 1)
    assert past == {
        0: PartitionAt(0, 4, later=2, stamped=since[0]),
        1: PartitionAt(0, 1),
        2: PartitionAt(0, 0),
        3: PartitionAt(0, 3, later=1, stamped=since[10]),
        4: PartitionAt(2, 2),
        5: PartitionAt(0, 3, later=0, stamped=since[3]),
        7: PartitionAt(0, 0),
    }
    assert {number: partition.later for number, partition in at.topics[TOPIC].items()} == {0: 0, 1: 0}


def test_a_timestamp_beyond_all_calendars_is_one_of_the_future(
    minicluster: Minicluster, brokers: KafkaPolicy, who: Identity
) -> None:
    topic, most = "contract-far", str(2**63 - 1)
    with closing(KafkaAdminClient(**KafkaLogin(minicluster.bootstrap_servers, who).options())) as admin:
        configs = {"message.timestamp.after.max.ms": most}
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1, topic_configs=configs)])
    with producer(brokers, who) as writer:
        writer.send(topic, b"a record", partition=0, timestamp_ms=10**15).get(30)
    [partition] = KafkaEnds(who).at(brokers, [topic], SIX).topics[topic].values()
    assert (partition.later, partition.stamped) == (0, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


def test_of_a_topic_that_is_not_there_no_moment_is_known(brokers: KafkaPolicy, who: Identity) -> None:
    with pytest.raises(NotFound, match="no-such-topic"):
        KafkaEnds(who).at(brokers, [TOPIC, "no-such-topic"], SIX)


def test_a_topic_that_is_not_there_is_not_found(brokers: KafkaPolicy, who: Identity) -> None:
    with pytest.raises(NotFound):
        KafkaEnds(who).of(brokers, {"no-such-topic": {0: 1}})
