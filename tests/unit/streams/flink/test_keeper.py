"""With which tokens new TaskManagers start, by the word of the keeper beside the job."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.streams.contract import CONTRACT
from airflow_kstream.model.streams.flink_contract import kept_file
from airflow_kstream.model.streams.generation import Adoption, Claim, StreamId
from airflow_kstream.model.streams.horizon import WorkerTokens
from airflow_kstream.supervise.streams.flink.flink_keeper import flink_worker_tokens
from airflow_kstream.supervise.streams.flink.flink_progress import JobMemory, KnownJob
from airflow_kstream.supervise.streams.folder.engine import Newest
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import TICKET_SPEC, application, claim_of

APP = application(1, ApplicationState.RUNNING)
LAUNCH = WorkerTokens("TaskManager", renewed=True)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Job:
    """A generation, ten minutes after its claim, and what its keeper wrote."""

    def __init__(self) -> None:
        # A clock that stands: files have milliseconds.
        clock = SimClock()
        clock.now = lambda: NOW  # type: ignore[method-assign]
        self.hdfs = SimHdfs(clock)
        self.session = session_of(self.hdfs, SimYarn(clock))
        self.now = self.hdfs.now()
        self.claim = claim_of(TICKET_SPEC, 1, self.now - 10 * MINUTE)
        self.names: tuple[str, ...] = ()
        self.seconds = 0.0
        self.memory = JobMemory(clock=lambda: self.seconds)

    def confirms(self, *tokens: dict[str, Any], ago: timedelta = MINUTE, **more: Any) -> None:
        fields = {
            "contract": CONTRACT,
            "generation": 1,
            "application": APP.id,
            "time": (self.now - ago).isoformat(),
            "every_seconds": 300,
            "rewritten": (self.now - MINUTE).isoformat(),
            "trouble": "",
            "tokens": list(tokens),
        }
        folder = StreamId(TICKET_SPEC.name, self.session.cluster.state_dir).folder
        self.hdfs.write(f"{folder}/{kept_file(1)}", json.dumps(fields | more), overwrite=True)
        self.names = (kept_file(1),)
        self.seconds += 60

    def seen(self, claim: Claim | None = None, app: Application | None = APP) -> WorkerTokens | None:
        return flink_worker_tokens(self.session, Newest(claim or self.claim, app), self.names, self.memory)

    def silent(self) -> str:
        seen = self.seen()
        return seen.silent if seen else ""


@pytest.fixture
def job() -> Job:
    return Job()


def token(issued: datetime, until: datetime | None = None, kind: str = "HDFS_DELEGATION_TOKEN") -> dict[str, Any]:
    def millis(moment: datetime | None) -> int | None:
        return round(moment.timestamp() * 1000) if moment else None

    return {
        "kind": kind,
        "service": "ha-hdfs:prod",
        "owner": "orders",
        "real_user": "",
        "renewer": "yarn",
        "issued": millis(issued),
        "max_date": millis(issued + 7 * DAY),
        "sequence_number": 41,
        "until": millis(until),
    }


def test_before_the_first_claim_there_are_none(job: Job) -> None:
    assert flink_worker_tokens(job.session, Newest(), ()) is None


def test_an_adopted_job_has_those_of_a_launch_that_nobody_renews(job: Job) -> None:
    adopted = replace(job.claim, adoption=Adoption(APP.id, job.now))
    assert job.seen(adopted) == replace(LAUNCH, renewed=False)


def test_a_token_of_a_round_serves_for_one_renew_interval(job: Job) -> None:
    job.confirms(token(job.now), {"kind": "YARN_AM_RM_TOKEN", "service": "rm", "until": None})
    assert job.seen() == replace(LAUNCH, kept_until=job.now + DAY)


def test_those_of_the_launch_are_renewed(job: Job) -> None:
    job.confirms(token(job.now), rewritten="")
    assert job.seen() == replace(LAUNCH, kept_until=job.now + 7 * DAY)


def test_a_pushed_token_serves_as_long_as_it_says(job: Job) -> None:
    job.confirms(token(job.now, until=job.now + 3 * MINUTE))
    assert job.seen() == replace(LAUNCH, kept_until=job.now + 3 * MINUTE)


def test_the_first_to_end_counts(job: Job) -> None:
    job.confirms(token(job.now), token(job.now - DAY / 2), token(job.now - 6 * DAY, kind="HBASE_AUTH_TOKEN"))
    assert job.seen() == replace(LAUNCH, kept_until=job.now + DAY / 2)


def test_a_keeper_that_is_late_by_twice_its_time_is_silent(job: Job) -> None:
    job.confirms(token(job.now), ago=9 * MINUTE)
    assert job.silent() == ""
    job.confirms(token(job.now), ago=11 * MINUTE)
    assert job.silent() == "its keeper's last word is 11m old"


def test_a_keeper_in_trouble_says_so(job: Job) -> None:
    job.confirms(token(job.now), trouble="the disk is full")
    assert job.silent() == "its keeper can't keep its tokens up to date: the disk is full"


def test_a_silent_keeper_has_20_minutes_after_the_longest_wait_for_the_queue(job: Job) -> None:
    patient = replace(TICKET_SPEC, submit=replace(TICKET_SPEC.submit, timeout=timedelta(hours=1)))
    claim = replace(job.claim, spec=patient, claimed_at=job.now - 79 * MINUTE)
    assert job.seen(claim) == LAUNCH
    late = replace(claim, claimed_at=job.now - 80 * MINUTE)
    assert job.seen(late) == replace(LAUNCH, silent="its keeper has confirmed nothing for 1h 20m")


@pytest.mark.parametrize("wrong", [{"application": "application_1_0009"}, {"contract": "9"}, {"tokens": "none"}])
def test_the_word_of_another_job_or_no_word_confirms_nothing(job: Job, wrong: dict[str, Any]) -> None:
    job.confirms(token(job.now), **wrong)
    assert job.seen() == LAUNCH


def test_a_strangers_file_counts_for_nothing(job: Job) -> None:
    job.confirms(token(job.now))
    job.names = ()
    assert job.seen() == LAUNCH


def test_a_keepers_word_is_read_once_a_minute(job: Job) -> None:
    job.confirms(token(job.now))
    first = job.seen()
    job.confirms(token(job.now - DAY / 2))
    job.seconds -= 60
    assert job.seen() == first
    job.seconds += 60
    assert job.seen() != first


def test_a_job_that_nobody_looks_at_for_an_hour_is_forgotten() -> None:
    seconds = 0.0
    memory = JobMemory(clock=lambda: seconds)
    looked_at, left = memory.of("application_1_0001", "a"), memory.of("application_1_0002", "b")
    seconds = 3000.0
    assert memory.of("application_1_0001", "a") is looked_at
    seconds = 3600.0
    memory.of("application_1_0003", "c")
    assert memory.of("application_1_0001", "a") is looked_at
    assert memory.of("application_1_0002", "b") is not left


def test_the_threads_of_two_clusters_share_a_memory() -> None:
    """One comes in while the other looks for what it may forget."""
    seconds, others = 0.0, list[KnownJob]()
    memory = JobMemory(clock=lambda: seconds)

    class Interrupted(float):
        def __sub__(self, other: float) -> float:
            nonlocal seconds
            seconds = 0.0
            others.append(memory.of("application_2_0001", "a"))
            return seconds - other

    memory.of("application_1_0001", "a")
    seconds = Interrupted()
    memory.of("application_1_0002", "a")
    (other,) = others
    assert other is memory.of("application_2_0001", "a")
