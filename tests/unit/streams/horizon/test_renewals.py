"""The rounds of new tokens in a driver's log: what they say, when they are read, and the end that a last one brings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason, LastRound
from airflow_kstream.model.streams.observation import CredentialLook, Observation
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from airflow_kstream.policy.streams.horizon.launch_tokens import last_round
from airflow_kstream.policy.streams.spark.spark_tokens import rounds_in
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import RecentLifetimes
from airflow_kstream.supervise.streams.look.renewals import Renewals
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.driver_logs import good, never
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
SPEC = replace(TICKET_SPEC, credentials=KeytabCredentials("streamer@EXAMPLE.COM", "/etc/streamer.keytab"))
CLAIM = claim_of(SPEC, 1, START)
ROUND = 0.75 * DAY


def ends_after(log: str, now: datetime = START, claim: Claim = CLAIM) -> Horizon:
    return horizon(SPEC.restart, Credentials(claim, CredentialLook(rounds=rounds_in(log))), now)


def test_a_round_names_its_tokens_end_and_the_next_round() -> None:
    (found,) = rounds_in(good(START))
    assert (found.at, found.tokens_end, found.delay) == (START, START + DAY, ROUND)
    assert not found.is_last


def test_a_driver_that_renews_has_no_horizon() -> None:
    log = good(START) + "a line of the job\n" + good(START + ROUND)
    assert last_round(rounds_in(log)) is None
    assert ends_after(log).reason is HorizonReason.NONE


def test_a_log_without_any_round_tells_nothing() -> None:
    for log in ("", "INFO something else\n", "Calculated delay on renewal is x, based on next renewal y"):
        assert last_round(rounds_in(log)) is None
        assert ends_after(log).reason is HorizonReason.NONE


def test_the_tokens_before_a_round_that_got_none_are_the_last() -> None:
    """SPARK-37787: the job lives for the six hours that are left of them, and its log says it in one line."""
    ends = ends_after(good(START) + never(START + ROUND))
    assert (ends.reason, ends.hard) == (HorizonReason.RENEWAL_ENDED, START + DAY)
    assert ends.plan is not None
    assert START + ROUND < ends.plan < START + 0.9 * DAY + MINUTE
    assert ends.force is not None


def test_a_last_round_whose_forerunner_left_the_log_ends_no_later_than_the_truth() -> None:
    ends = ends_after(never(START + 3 * ROUND))
    assert ends.hard == START + 2 * ROUND + DAY


def test_a_first_round_without_a_date_may_have_got_tokens_for_one_interval() -> None:
    ends = ends_after(never(START + MINUTE))
    assert ends.hard == START + MINUTE + DAY


def test_a_good_round_after_a_bad_one_is_another_drivers() -> None:
    """A second attempt writes another file; a log that was appended to shows the newest driver last."""
    assert last_round(rounds_in(never(START) + good(START + HOUR))) is None


def test_a_job_without_a_keytab_has_no_rounds() -> None:
    ends = horizon(
        TICKET_SPEC.restart,
        Credentials(
            claim_of(TICKET_SPEC, 1, START), CredentialLook(rounds=rounds_in(never(START)), renew_interval=HOUR)
        ),
        START,
    )
    assert (ends.reason, ends.hard) == (HorizonReason.TOKEN_MAX_LIFETIME, START + timedelta(days=7))


@pytest.mark.parametrize(("hours", "reason"), [(24, "NONE"), (18, "NONE"), (48, "NONE"), (17, "SHORTER_TOKENS")])
def test_tokens_that_do_not_last_until_the_next_round_are_an_end(hours: int, reason: str) -> None:
    ends = horizon(SPEC.restart, Credentials(CLAIM, CredentialLook(renew_interval=hours * HOUR)), START + HOUR)
    assert ends.reason is HorizonReason[reason]


def test_the_first_of_the_short_tokens_may_be_the_newest_or_the_next() -> None:
    """Whether the newest round came before the change is not visible."""
    soon = horizon(SPEC.restart, Credentials(CLAIM, CredentialLook(renew_interval=12 * HOUR)), START + HOUR)
    assert soon.hard == START + 12 * HOUR
    survived = horizon(SPEC.restart, Credentials(CLAIM, CredentialLook(renew_interval=12 * HOUR)), START + 13 * HOUR)
    assert survived.hard == START + ROUND + 12 * HOUR


def test_a_round_that_the_log_names_times_the_next_ones() -> None:
    """A driver that waited in its queue for an hour began its rounds an hour after its claim."""
    known = rounds_in(good(START + HOUR))
    ends = horizon(
        SPEC.restart, Credentials(CLAIM, CredentialLook(rounds=known, renew_interval=12 * HOUR)), START + 14 * HOUR
    )
    assert ends.hard == START + HOUR + ROUND + 12 * HOUR


# The reader.


@dataclass
class Logs:
    """The logs of drivers, and how often they were read."""

    text: str = ""
    read: int = 0
    refusal: KstreamError | None = None
    containers: list[str] = field(default_factory=list)

    def __call__(self, container: LoggedContainer) -> str:
        self.read += 1
        self.containers.append(container.id)
        if self.refusal:
            raise self.refusal
        return self.text


@pytest.fixture
def logs() -> Logs:
    return Logs()


def renewals(logs: Logs, *, at_once: bool = False) -> Renewals:
    made = Renewals(cast("ClusterSession", SimpleNamespace()), at_once=at_once, read=logs)
    made.lifetimes = cast("Any", SimpleNamespace(renew_interval=lambda: DAY))
    return made


ENGINE = SparkEngine()


def at(now: datetime, claim: Claim = CLAIM, container: str = "container_1_0001_01_000001") -> Observation:
    link = f"http://node1:8042/node/containerlogs/{container}/streamer"
    app = replace(application(claim.generation, ApplicationState.RUNNING), logs_url=link)
    yarn = SimulatedYarn(now, claims={claim.generation: claim}, applications=[(claim.generation, app)])
    return yarn.look()


def watch(reader: Renewals, begin: datetime, end: datetime, every: timedelta = MINUTE) -> Observation:
    now = begin
    while now < end:
        reader.known(at(now), ENGINE)
        now += every
    return reader.known(at(end), ENGINE)


def test_a_healthy_drivers_log_is_read_once_a_round(logs: Logs) -> None:
    reader, logs.text = renewals(logs), good(START)
    assert last_round(watch(reader, START, START + ROUND).credentials.rounds) is None
    assert logs.read == 1
    logs.text += good(START + ROUND)
    assert last_round(watch(reader, START + ROUND, START + 2 * ROUND).credentials.rounds) is None
    assert logs.read == 2


def test_a_failed_round_is_seen_within_minutes_and_read_once(logs: Logs) -> None:
    reader, logs.text = renewals(logs), good(START)
    watch(reader, START, START + ROUND)
    logs.text += never(START + ROUND)
    seen = watch(reader, START + ROUND, START + ROUND + 7 * MINUTE)
    assert last_round(seen.credentials.rounds) == LastRound(START + ROUND, START + DAY)
    assert watch(reader, START + ROUND + 8 * MINUTE, START + DAY).credentials.rounds == seen.credentials.rounds
    assert logs.read == 2


def test_a_round_that_comes_late_is_waited_for(logs: Logs) -> None:
    reader, logs.text = renewals(logs), good(START)
    watch(reader, START, START + ROUND + 10 * MINUTE)
    logs.text += never(START + ROUND + 8 * MINUTE)
    assert (
        last_round(watch(reader, START + ROUND + 11 * MINUTE, START + ROUND + 30 * MINUTE).credentials.rounds)
        is not None
    )


def test_a_log_that_shows_nothing_or_is_refused_is_read_three_times_a_round(logs: Logs) -> None:
    for refusal in (None, Denied("it answered 403")):
        reader, logs.read, logs.refusal = renewals(logs), 0, refusal
        assert last_round(watch(reader, START, START + ROUND).credentials.rounds) is None
        assert logs.read == 3
        watch(reader, START + ROUND, START + 2 * ROUND)
        assert logs.read == 6


def test_a_fleet_is_read_over_minutes_and_not_at_once(logs: Logs) -> None:
    reader, later = renewals(logs), START + 30 * DAY
    logs.text = good(later - HOUR)
    claims = [replace(CLAIM, nonce=f"nonce-{number}") for number in range(200)]
    per_minute = []
    for minute in range(8):
        before = logs.read
        for number, claim in enumerate(claims):
            seen = at(later + minute * MINUTE, claim)
            reader.known(replace(seen, stream=StreamId(f"stream-{number}", "/kstream")), ENGINE)
        per_minute.append(logs.read - before)
    assert sum(per_minute) == len(claims)
    assert max(per_minute) < len(claims) / 3


def test_a_caller_that_looks_once_reads_at_once(logs: Logs) -> None:
    logs.text = good(START) + never(START + ROUND)
    assert last_round(renewals(logs, at_once=True).known(at(START + ROUND), ENGINE).credentials.rounds) is not None


def test_a_driver_of_another_attempt_or_generation_is_another_log(logs: Logs) -> None:
    reader, logs.text = renewals(logs, at_once=True), never(START)
    assert last_round(reader.known(at(START + HOUR), ENGINE).credentials.rounds) is not None
    logs.text = good(START + HOUR)
    assert (
        last_round(reader.known(at(START + HOUR, container="container_1_0001_02_000001"), ENGINE).credentials.rounds)
        is None
    )
    assert (
        last_round(reader.known(at(START + HOUR, claim_of(SPEC, 2, START + HOUR)), ENGINE).credentials.rounds) is None
    )
    assert logs.read == 3


def test_a_job_without_a_keytab_is_not_read(logs: Logs) -> None:
    renewals(logs, at_once=True).known(at(START, claim_of(TICKET_SPEC, 1, START)), ENGINE)
    assert logs.read == 0


# The lifetimes.


@dataclass
class Tokens(SimHdfs):
    """It renews each next token for another time, or is away."""

    measured: list[timedelta | KstreamError] = field(default_factory=list)

    def now(self) -> datetime:
        return START

    def renew_token(self, token: str) -> datetime:
        answer = self.measured.pop(0)
        if isinstance(answer, KstreamError):
            raise answer
        return START + answer


def test_lifetimes_are_measured_once_an_hour_and_survive_servers_that_are_away() -> None:
    hdfs, clock = Tokens(SimClock(), measured=[Unavailable("away"), DAY, Unavailable("away"), HOUR]), 0.0
    recent = RecentLifetimes(session_of(hdfs, SimYarn(hdfs.clock)), clock=lambda: clock)
    assert recent.renew_interval() is None
    clock += 301
    assert recent.renew_interval() == DAY
    clock += 3599
    assert recent.renew_interval() == DAY
    assert len(hdfs.measured) == 2
    clock += 2
    assert recent.renew_interval() == DAY
    clock += 301
    assert recent.renew_interval() == HOUR
