"""Which tokens a driver takes, judged in a real JVM by Hadoop's own classes: those alone that renew one it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_kstream.jobs.kstream_tokens import Refused, SparkTokens
from airflow_kstream.model.tokens import DelegationToken
from tests.simulated.hadoop_writers import identifier_bytes, java_file
from tests.simulated.token_cases import HDFS, HERS

LATER = replace(HERS, issued=HERS.issued + timedelta(days=1), sequence_number=43)


class Driver(SparkTokens):
    """A driver that was launched with one token of `HERS`; it keeps what it would send."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._held = self._spark().deserialize(bytearray(file(HERS)))
        self.sent: list[bytes] = []

    def _current(self) -> Any:
        return self._held

    def send(self, content: bytes) -> None:
        self.sent.append(content)
        self._held = self._spark().deserialize(bytearray(content))


def file(token: DelegationToken, service: str = HDFS.service, kind: str = HDFS.kind) -> bytes:
    written = replace(HDFS, alias=service, service=service, kind=kind, identifier=identifier_bytes(kind, token))
    return java_file([written])


@pytest.fixture
def driver(spark: SparkSession) -> Driver:
    return Driver(spark.sparkContext)


def test_a_younger_token_of_the_same_owner_is_used(driver: Driver) -> None:
    (used,), sent = driver.use(file(LATER))
    assert (used["sequence_number"], used["owner"], used["real_user"]) == (43, HERS.owner, HERS.real_user)
    assert driver.sent == [sent]


def test_a_token_that_is_used_already_is_not_sent_again(driver: Driver) -> None:
    driver.use(file(HERS))
    assert driver.sent == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda: b"no tokens", "no credentials file"),
        (lambda: file(replace(LATER, owner="gateway@EXAMPLE.COM")), "act as somebody else"),
        (lambda: file(replace(LATER, real_user="")), "act as somebody else"),
        (lambda: file(LATER, kind="SWEBHDFS delegation"), "act as somebody else"),
        (lambda: file(LATER, service="ha-hdfs:elsewhere"), "has no token for ha-hdfs:elsewhere"),
        (lambda: file(replace(HERS, issued=HERS.issued - timedelta(days=1))), "older than the one"),
    ],
    ids=["no tokens", "another owner", "another real user", "another kind", "another service", "an older one"],
)
def test_what_renews_none_of_a_drivers_tokens_is_refused(
    driver: Driver, content: Callable[[], bytes], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        driver.use(content())
    assert driver.sent == []
