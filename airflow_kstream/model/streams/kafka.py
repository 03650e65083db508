"""Kafka as a source: the brokers that a declaration names, and what a checkpoint says of its topics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow_kstream.model.fields import STRICT, Brokers, ServiceName

# Of each topic, of each partition.
Offsets = Mapping[str, Mapping[int, int]]


class KafkaProtocol(StrEnum):
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"


@dataclass(frozen=True)
class KafkaPolicy:
    """The brokers of the topics that the stream reads, so that its watcher can ask where these end.

        kafka: {bootstrap_servers: "broker1:9092,broker2:9092"}

    Without them, a query that plans no batch counts as IDLE whatever waits in its topics. The connection's principal
    asks, with Kerberos where the protocol is SASL, and needs no right but to describe the topics. The job's own way to
    Kafka is its own.
    """

    __pydantic_config__ = STRICT

    bootstrap_servers: Brokers | None = None
    security_protocol: KafkaProtocol = KafkaProtocol.SASL_PLAINTEXT
    service_name: ServiceName = "kafka"


@dataclass(frozen=True)
class Backlog:
    """The records that a query has not planned to read; None if that is not known, and `why` it is not."""

    records: int | None
    topics: tuple[str, ...] = ()
    why: str = ""


def planned_offsets(text: str) -> Offsets:
    """Return up to where a batch was planned to read each topic, from its file in `offsets/`; empty without Kafka.

    The file has a version, the batch's metadata, and a line for each source (Spark's OffsetSeqLog); Kafka's is
    `{"topic":{"0":42}}` (JsonUtils.partitionOffsets).
    """
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines()[2:]:
        for topic, partition, offset in _of_kafka(line):
            known = found.setdefault(topic, {})
            # One topic may be read twice: the source that is behind counts.
            known[partition] = min(offset, known.get(partition, offset))
    return found


def backlog(planned: Offsets, ends: Offsets) -> Backlog:
    """Return what waits beyond the planned offsets. A partition whose end is unknown counts for nothing."""
    waiting = {
        topic: sum(max(ends.get(topic, {}).get(number, offset) - offset, 0) for number, offset in partitions.items())
        for topic, partitions in planned.items()
    }
    return Backlog(sum(waiting.values()), tuple(sorted(topic for topic, records in waiting.items() if records)))


def _of_kafka(line: str) -> Iterator[tuple[str, int, int]]:
    try:
        topics = json.loads(line)
        rows = [
            (str(topic), int(partition), int(offset))
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        ]
    except (ValueError, TypeError, AttributeError):
        # Another source's line: a number, a folder's log, a dash for none.
        return
    yield from rows
