"""Where topics end: one question to the brokers for all partitions of a query, and one a minute at most."""

from __future__ import annotations

import time
from threading import Lock

from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.kafka import KafkaPolicy, Offsets

# Seconds for which an answer, or its lack, is good: an idle query is looked at every few seconds, for days.
_FRESH = 60.0
_PATIENCE_MS = 10_000


class KafkaEnds:
    """The ends of topics as one identity sees them. `ca` is the file of a private authority. Thread-safe.

    Brokers that did not answer are not asked again for a minute, for whatever topic: a dead Kafka costs a round of
    looks ten seconds, and not ten for each stream.
    """

    def __init__(self, identity: Identity, ca: str | None = None) -> None:
        self._identity, self._ca = identity, ca
        self._lock = Lock()
        self._known: dict[tuple[KafkaPolicy, frozenset[str]], tuple[float, Offsets]] = {}
        self._silent: dict[KafkaPolicy, tuple[float, KstreamError]] = {}

    def of(self, brokers: KafkaPolicy, planned: Offsets) -> Offsets:
        """Return the ends of committed records (the last stable offsets) of these partitions.

        Raises InvalidInput: without brokers, or without kafka-python. Raises Denied, NotFound, CredentialError,
        Unavailable.
        """
        key, now = (brokers, frozenset(planned)), time.monotonic()
        with self._lock:
            at, error = self._silent.get(brokers, (-_FRESH, None))
            if error is not None and now - at < _FRESH:
                raise error
            at, ends = self._known.get(key, (-_FRESH, {}))
            if ends and now - at < _FRESH:
                return ends
            try:
                ends = self._asked(brokers, planned)
            except KstreamError as trouble:
                if trouble.retryable:
                    self._silent[brokers] = time.monotonic(), trouble
                raise
            self._known[key] = time.monotonic(), ends
            return ends

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
