"""What the errors of kafka-python mean. A producer names the first one when it refuses every later request."""

from __future__ import annotations

import pytest
from kafka import errors as kafka_errors

from airflow_kstream.clients.kafka import KafkaLogin, kafka_trouble
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

LOGIN = KafkaLogin("broker:9092", Identity("alice@REALM", keytab="/alice.keytab"))


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (kafka_errors.TopicAuthorizationFailedError(), Denied),
        (kafka_errors.KafkaError("an earlier one has failed", kafka_errors.TopicAuthorizationFailedError()), Denied),
        (kafka_errors.KafkaError("an earlier one has failed"), Unavailable),
    ],
    ids=["at once", "at the next request", "by something else"],
)
def test_a_refusal_is_not_taken_for_brokers_that_give_no_answer(
    error: kafka_errors.KafkaError, meaning: type[KstreamError]
) -> None:
    with pytest.raises(meaning), kafka_trouble("ship lines", LOGIN):
        raise error
