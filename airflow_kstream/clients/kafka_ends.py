"""Where topics end: one question to the brokers for all partitions of a query, and one a minute at most."""

from __future__ import annotations

import time
from threading import Lock

from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream_policies import KafkaPolicy, Offsets

# Seconds for which an answer, or its lack, is good: an idle query is looked at every few seconds, for days.
_FRESH = 60.0
_PATIENCE_MS = 10_000


_Question = tuple[KafkaPolicy, frozenset[tuple[str, int]]]


class KafkaEnds:
    """The ends of topics as one identity sees them. `ca` is the file of a private authority. Thread-safe.

    Brokers that did not answer are not asked again for a minute, for whatever topic: a dead Kafka costs a round of
    looks ten seconds, and not ten for each stream.
    """

    def __init__(self, identity: Identity, ca: str | None = None) -> None:
        self._identity, self._ca = identity, ca
        self._lock = Lock()
        self._known: dict[_Question, tuple[float, Offsets]] = {}
        self._failed: dict[KafkaPolicy | _Question, tuple[float, KstreamError]] = {}

    def of(self, brokers: KafkaPolicy, planned: Offsets) -> Offsets:
        """Return the ends of committed records (the last stable offsets) of these partitions.

        Raises InvalidInput: without brokers, or without kafka-python. Raises Denied, NotFound, CredentialError,
        Unavailable.
        """
        question = brokers, frozenset((topic, number) for topic, numbers in planned.items() for number in numbers)
        with self._lock:
            self._forget_what_is_old()
            if failed := self._failed.get(brokers) or self._failed.get(question):
                raise failed[1].with_traceback(None)
            if question not in self._known:
                self._known[question] = time.monotonic(), self._asked_or_failed(question, planned)
            return self._known[question][1]

    def _forget_what_is_old(self) -> None:
        now = time.monotonic()
        self._known = {key: answer for key, answer in self._known.items() if now - answer[0] < _FRESH}
        self._failed = {key: failure for key, failure in self._failed.items() if now - failure[0] < _FRESH}

    def _asked_or_failed(self, question: _Question, planned: Offsets) -> Offsets:
        brokers, _ = question
        try:
            return self._asked(brokers, planned)
        except KstreamError as error:
            # A refusal is this question's own; silence is the brokers'.
            self._failed[brokers if error.retryable else question] = time.monotonic(), error
            raise

    def _asked(self, brokers: KafkaPolicy, planned: Offsets) -> Offsets:
        try:
            from kafka import IsolationLevel, TopicPartition
            from kafka.admin import OffsetSpec

            from airflow_kstream.clients.kafka import KafkaLogin, asking, kafka_trouble
        except ImportError as error:
            message = "kafka-python is not installed on this host; install this package's extra `kafka`"
            raise InvalidInput(message, tried="ask Kafka where topics end") from error
        if not brokers.bootstrap_servers:
            raise InvalidInput("kafka.bootstrap_servers is missing", tried="ask Kafka where topics end")
        login = KafkaLogin(
            brokers.bootstrap_servers, self._identity, brokers.security_protocol.value, brokers.service_name, self._ca
        )
        login.check()
        wanted = [TopicPartition(topic, number) for topic, numbers in planned.items() for number in numbers]
        tried = f"ask where {', '.join(sorted(planned))} end"
        with kafka_trouble(tried, login), asking(login, _PATIENCE_MS) as admin:
            latest = dict.fromkeys(wanted, OffsetSpec.LATEST)
            ends = admin.list_partition_offsets(latest, IsolationLevel.READ_COMMITTED, timeout_ms=_PATIENCE_MS)
        found: dict[str, dict[int, int]] = {}
        for partition, end in ends.items():
            found.setdefault(partition.topic, {})[partition.partition] = int(end.offset)
        return found
