"""Where topics end, and what they had at a moment: one question to the brokers for all partitions of a query."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.progress import PartitionAt, TopicsAt
from airflow_kstream.model.streams.stream_policies import KafkaPolicy, Offsets

if TYPE_CHECKING:
    from kafka import KafkaAdminClient, TopicPartition

# Seconds for which an answer, or its lack, is good: an idle query is looked at every few seconds, for days.
_FRESH = 60.0
_PATIENCE_MS = 10_000
# The last second of the year 9999: a producer may write any timestamp.
_LAST_MS = 253_402_300_799_000
T = TypeVar("T")
_Question = tuple[KafkaPolicy, frozenset[tuple[str, int]]]
_Topics = tuple[KafkaPolicy, frozenset[str]]


class KafkaEnds:
    """The ends of topics as one identity sees them. `ca` is the file of a private authority. Thread-safe.

    Brokers that did not answer are not asked again for a minute, for whatever topic, and are asked one question at a
    time: a dead Kafka costs a round of looks some ten seconds, however many brokers it has, and not ten for each
    stream. Questions to other brokers don't wait for it.
    """

    def __init__(self, identity: Identity, ca: str | None = None) -> None:
        self._identity, self._ca = identity, ca
        # Of what follows; it is never held while brokers are asked.
        self._lock = Lock()
        # Each lasts for as long as somebody holds it or waits for it.
        self._turns: WeakValueDictionary[KafkaPolicy, Lock] = WeakValueDictionary()
        self._answers: dict[KafkaPolicy | _Question | _Topics, tuple[float, Offsets | KstreamError]] = {}

    def of(self, brokers: KafkaPolicy, planned: Offsets) -> Offsets:
        """Return the ends of committed records (the last stable offsets) of these partitions.

        Raises InvalidInput: without brokers, or without kafka-python. Raises Denied, NotFound, CredentialError,
        Unavailable.
        """
        question = brokers, frozenset((topic, number) for topic, numbers in planned.items() for number in numbers)
        with self._turn(brokers):
            ends = self._remembered(question)
            if ends is None:
                ends = self._asked_or_failed(question, lambda: self._asked(brokers, planned))
                self._remember(question, ends)
            return ends

    def _turn(self, brokers: KafkaPolicy) -> Lock:
        """Return the lock of who asks these brokers."""
        with self._lock:
            return self._turns.setdefault(brokers, Lock())

    def _remembered(self, question: _Question | _Topics) -> Offsets | None:
        """Return the ends that the brokers told a moment ago, None if they didn't. Raises what failed then."""
        now = time.monotonic()
        with self._lock:
            self._answers = {key: answer for key, answer in self._answers.items() if now - answer[0] < _FRESH}
            found = self._answers.get(question[0]) or self._answers.get(question)
        answer = found[1] if found else None
        if isinstance(answer, KstreamError):
            raise answer.with_traceback(None)
        return answer

    def _remember(self, key: KafkaPolicy | _Question | _Topics, answer: Offsets | KstreamError) -> None:
        with self._lock:
            self._answers[key] = time.monotonic(), answer

    def _asked_or_failed(self, question: _Question | _Topics, ask: Callable[[], T]) -> T:
        brokers, _ = question
        try:
            return ask()
        except KstreamError as error:
            # A refusal is this question's own; silence is the brokers'.
            self._remember(brokers if error.retryable else question, error)
            raise

    def _asked(self, brokers: KafkaPolicy, planned: Offsets) -> Offsets:
        with self._admin(brokers, f"ask where {', '.join(sorted(planned))} end") as admin:
            from kafka import IsolationLevel, TopicPartition
            from kafka.admin import OffsetSpec

            wanted = [TopicPartition(topic, number) for topic, numbers in planned.items() for number in numbers]
            latest = dict.fromkeys(wanted, OffsetSpec.LATEST)
            ends = admin.list_partition_offsets(latest, IsolationLevel.READ_COMMITTED, timeout_ms=_PATIENCE_MS)
        found: dict[str, dict[int, int]] = {}
        for partition, end in ends.items():
            found.setdefault(partition.topic, {})[partition.partition] = int(end.offset)
        return found

    def at(self, brokers: KafkaPolicy, topics: Collection[str], moment: datetime) -> TopicsAt:
        """Return all partitions of these topics as they are now, with the first record since a moment in each.

        Records of transactions count from when they are written: a query that reads committed records only gets to
        them later. Only failures are remembered. Raises as `of`.
        """
        question = brokers, frozenset(topics)
        with self._turn(brokers):
            self._remembered(question)
            return self._asked_or_failed(question, lambda: self._asked_at(brokers, topics, moment))

    def _asked_at(self, brokers: KafkaPolicy, topics: Collection[str], moment: datetime) -> TopicsAt:
        asked = datetime.now(UTC)
        with self._admin(brokers, f"ask what {', '.join(sorted(topics))} had at {moment.isoformat()}") as admin:
            from kafka.admin import OffsetSpec

            wanted = _partitions(admin, topics)
            # The ends come first: what arrives between the requests is beyond them, and younger than the moment.
            ends, firsts, laters = (
                admin.list_partition_offsets(dict.fromkeys(wanted, spec), timeout_ms=_PATIENCE_MS)
                for spec in (OffsetSpec.LATEST, OffsetSpec.EARLIEST, int(moment.timestamp() * 1000))
            )
        found: dict[str, dict[int, PartitionAt]] = {topic: {} for topic in topics}
        for each in wanted:
            later = laters[each] if laters[each].offset >= 0 else None
            found[each.topic][each.partition] = PartitionAt(
                int(firsts[each].offset),
                int(ends[each].offset),
                int(later.offset) if later else None,
                datetime.fromtimestamp(min(later.timestamp, _LAST_MS) / 1000, UTC) if later else None,
            )
        return TopicsAt(asked, found)

    @contextmanager
    def _admin(self, brokers: KafkaPolicy, tried: str) -> Iterator[KafkaAdminClient]:
        try:
            from airflow_kstream.clients.kafka import KafkaLogin, asking, kafka_trouble
        except ImportError as error:
            message = "kafka-python is not installed on this host; install this package's extra `kafka`"
            raise InvalidInput(message, tried=tried) from error
        if not brokers.bootstrap_servers:
            raise InvalidInput("kafka.bootstrap_servers is missing", tried=tried)
        login = KafkaLogin(
            brokers.bootstrap_servers, self._identity, brokers.security_protocol.value, brokers.service_name, self._ca
        )
        login.check()
        with kafka_trouble(tried, login), asking(login, _PATIENCE_MS) as admin:
            yield admin


def _partitions(admin: KafkaAdminClient, topics: Collection[str]) -> list[TopicPartition]:
    from kafka import TopicPartition, errors

    found = []
    for topic in admin.describe_topics(sorted(topics)):
        if topic["error_code"]:
            raise errors.for_code(topic["error_code"])(topic["name"])
        found += [TopicPartition(topic["name"], each["partition_index"]) for each in topic["partitions"]]
    return found
