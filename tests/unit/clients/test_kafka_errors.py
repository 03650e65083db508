"""What the errors of kafka-python mean. Which of them a fenced producer meets depends on how quickly it is told."""

from __future__ import annotations

import pytest
from kafka import errors as kafka_errors

from airflow_kstream.clients.kafka import KafkaLogin, kafka_trouble
from airflow_kstream.model.errors import Conflict, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

LOGIN = KafkaLogin("broker:9092", Identity("alice@REALM", keytab="/alice.keytab"))


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (kafka_errors.ProducerFencedError(), Conflict),
        (kafka_errors.KafkaError("an earlier request has failed", kafka_errors.ProducerFencedError()), Conflict),
        (kafka_errors.KafkaError("an earlier request has failed"), Unavailable),
    ],
    ids=["at once", "at the next request", "by something else"],
)
def test_a_producer_that_was_fenced_hears_of_the_other_one(
    error: kafka_errors.KafkaError, meaning: type[KstreamError]
) -> None:
    with pytest.raises(meaning) as failed, kafka_trouble("ship lines", LOGIN):
        raise error
    assert ("another producer took over" in str(failed.value)) is (meaning is Conflict)
