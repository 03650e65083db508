"""Which declarations limit what one batch reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.policy.streams.spark.spark_needs import limited
from tests.simulated.yarn import TICKET_SPEC


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ({"arguments": ("--max-offsets-per-trigger", "1000")}, "max-offsets-per-trigger"),
        ({"arguments": ("--min-offsets-per-trigger", "100")}, "min-offsets-per-trigger"),
        ({"arguments": ("maxFilesPerTrigger=10",)}, "maxFilesPerTrigger"),
        ({"arguments": ('{"source": {"maxBytesPerTrigger": "1g"}}',)}, "maxBytesPerTrigger"),
        ({"conf": {"spark.orders.maxOffsetsPerTrigger": "1000"}}, "maxOffsetsPerTrigger"),
        ({"conf": {"spark.orders.options": "streaming-max-rows-per-micro-batch=9"}}, "max-rows-per-micro-batch"),
        ({"deploy": Deploy(environment={"MAX_EVENTS_PER_TRIGGER": "5"})}, "MAX_EVENTS_PER_TRIGGER"),
    ],
)
def test_a_limit_is_found_however_it_is_declared(declared: dict[str, Any], named: str) -> None:
    spec = replace(TICKET_SPEC, **declared)
    assert f" ({named}), " in limited(spec)
    assert "declare `kafka: {bootstrap_servers: ...}`" in limited(spec)
    with_kafka = replace(spec, kafka=KafkaPolicy("broker:9092"))
    assert limited(with_kafka) == "", "its offsets tell"
    assert "nothing else proves it" in limited(with_kafka, beside_kafka=True)


def test_what_limits_no_batch_is_not_taken_for_a_limit() -> None:
    harmless = ("--max-retries", "3", "maxTriggerDelay=15m")
    conf: dict[str, str | SecretRef] = {
        "spark.task.maxFailures": "4",
        "spark.orders.key": SecretRef("conn:maxOffsetsPerTrigger"),
    }
    assert limited(replace(TICKET_SPEC, arguments=harmless, conf=conf)) == ""
