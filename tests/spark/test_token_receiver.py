"""Which tokens a driver takes, judged in a real JVM by Hadoop's own classes: those alone that renew one it has.

No NameNode is there: what one says to a token is simulated. tests/contract/hdfs/test_driver_authors.py has its words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_kstream.jobs.kstream_tokens import Fresh, NotYet, Refused, SparkTokens
from airflow_kstream.model.kerberos.tokens import DelegationToken
from tests.simulated.hadoop_writers import identifier_bytes, java_file
from tests.simulated.java_errors import JavaError
from tests.simulated.token_cases import HDFS, HERS

LATER = replace(HERS, issued=HERS.issued + timedelta(days=1), sequence_number=43)
ELSEWHERE = "ha-hdfs:other"
WRONG = JavaError(
    "org.apache.hadoop.ipc.RemoteException",
    "javax.security.sasl.SaslException",
    "DIGEST-MD5: digest response format violation. Mismatched response.",
)
AWAY = JavaError("java.net.ConnectException", "Connection refused")


class Driver(SparkTokens):
    """A driver that was launched with two tokens of `HERS`; it keeps what it would send."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._held = self._credentials(file(HERS, ELSEWHERE))
        self._held.mergeAll(self._credentials(file(HERS)))
        self.sent: list[bytes] = []
        self.asked: list[str] = []
        self.says: Exception | None = None
        self.greeted: set[str] = set()

    def password(self, service: str = HDFS.service) -> bytes:
        return bytes(self._held.getToken(self._text(service)).getPassword())

    def _credentials(self, content: bytes) -> Any:
        return self._spark().deserialize(bytearray(content))

    def _current(self) -> Any:
        return self._held

    def send(self, content: bytes) -> None:
        self.sent.append(content)
        self._held.addAll(self._credentials(content))

    def _greet_namenode(self, token: Any, uri: str) -> None:
        self.asked.append(uri)
        if self.says and uri not in self.greeted:
            raise self.says

    def take(self, content: bytes) -> Fresh:
        fresh = self.tried(content)
        self.use(fresh)
        return fresh


def file(token: DelegationToken, *services: str, kind: str = HDFS.kind, password: bytes = HDFS.password) -> bytes:
    written = replace(HDFS, kind=kind, identifier=identifier_bytes(kind, token), password=password)
    return java_file([replace(written, alias=name, service=name) for name in services or (HDFS.service,)])


@pytest.fixture
def driver(spark: SparkSession) -> Driver:
    return Driver(spark.sparkContext)


def test_a_younger_token_of_the_same_owner_is_used(driver: Driver) -> None:
    fresh = driver.take(file(LATER))
    (used,) = fresh.tokens
    assert (used["sequence_number"], used["owner"], used["real_user"]) == (43, HERS.owner, HERS.real_user)
    assert driver.sent == [fresh.content]


def test_a_token_that_is_used_already_is_not_sent_again(driver: Driver) -> None:
    driver.take(file(HERS, password=b"another"))
    assert (driver.sent, driver.password()) == ([], HDFS.password)


def test_beside_a_younger_token_one_of_equal_age_replaces_none(driver: Driver) -> None:
    """Its password may be another. Executors that start later get what was sent last, so that all are in it."""
    younger, equal = file(LATER), file(HERS, ELSEWHERE, password=b"another")
    both = driver._credentials(younger)
    both.addAll(driver._credentials(equal))
    driver.take(bytes(driver._spark().serialize(both)))
    sent = driver._credentials(driver.sent[-1])
    assert bytes(sent.getToken(driver._text(ELSEWHERE)).getPassword()) == HDFS.password
    assert driver.asked == ["hdfs://prod"]


def test_a_token_that_its_namenode_does_not_take_replaces_none(driver: Driver) -> None:
    driver.says = WRONG
    with pytest.raises(Refused, match=r"the NameNode does not take the token for ha-hdfs:prod: .*Mismatched"):
        driver.take(file(LATER, password=b"wrong"))
    assert (driver.sent, driver.password()) == ([], HDFS.password)


def test_while_its_namenode_does_not_answer_a_token_waits_and_the_old_one_stays(driver: Driver) -> None:
    driver.says = AWAY
    with pytest.raises(NotYet, match=r"the token for ha-hdfs:prod can't be tried: .*Connection refused"):
        driver.take(file(LATER))
    assert (driver.sent, driver.password()) == ([], HDFS.password)
    driver.says = None
    driver.take(file(LATER))
    assert len(driver.sent) == 1


def test_tokens_are_used_together_or_not_yet(driver: Driver) -> None:
    """A supervisor takes back, and cancels, what is not used: none of it may be in use by then."""
    both = file(LATER, HDFS.service, ELSEWHERE)
    driver.says, driver.greeted = AWAY, {"hdfs://prod"}
    with pytest.raises(NotYet, match="the token for ha-hdfs:other"):
        driver.take(both)
    assert driver.sent == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda: b"no tokens", "not a credentials file"),
        (lambda: file(replace(LATER, owner="gateway@EXAMPLE.COM")), "act as somebody else"),
        (lambda: file(replace(LATER, real_user="")), "act as somebody else"),
        (lambda: file(LATER, kind="SWEBHDFS delegation"), "act as somebody else"),
        (lambda: file(LATER, "ha-hdfs:elsewhere"), "has no token for ha-hdfs:elsewhere"),
        (lambda: file(replace(HERS, issued=HERS.issued - timedelta(days=1))), "not younger than"),
        (lambda: file(replace(HERS, max_date=HERS.max_date + timedelta(days=1))), "not younger than"),
    ],
    ids=[
        "no tokens",
        "another owner",
        "another real user",
        "another kind",
        "another service",
        "an older one",
        "one of equal age",
    ],
)
def test_what_renews_none_of_a_drivers_tokens_is_refused(
    driver: Driver, content: Callable[[], bytes], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        driver.take(content())
    assert driver.sent == []
