"""A client that ends without an application, and a ResourceManager that may merely not list it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from airflow_kstream.model.errors import SubmissionFailed, Unavailable
from airflow_kstream.model.streams.submission import SubmitOutcome
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.flink import FlinkLife
from tests.simulated.life import Life
from tests.simulated.servers import SimHdfs, SimYarn

FAILS = SubmitOutcome(1, "no such jar")


@pytest.fixture
def failing(life: Life) -> Life:
    life.engine.ends = [FAILS]
    return life


def fences(life: Life) -> list[str]:
    return [path for path in life.hdfs.files if "/fence-" in path]


def test_what_surely_did_not_arrive_loses_its_fence(failing: Life) -> None:
    with pytest.raises(SubmissionFailed, match="no such jar"):
        failing.begin()
    assert fences(failing) == []


def test_a_client_that_breaks_before_it_starts_loses_its_fence(life: Life) -> None:
    """Whatever broke it: nobody else may have to wait for an application that was never asked for."""

    def breaks() -> None:
        raise MemoryError

    flink = FlinkLife(life)
    start_from(life.run, "a new stream", fresh=True)
    flink.engine.at_submit = breaks
    with pytest.raises(MemoryError):
        life.begin()
    assert fences(life) == []


def test_what_may_have_arrived_keeps_its_fence_and_the_failure_is_raised(failing: Life) -> None:
    def doubt(request: str, of: str) -> None:
        if request == "confirm_absence":
            raise Unavailable(f"another one says that it is ACTIVE, and may have {of}")

    failing.yarn.at_request = doubt
    with pytest.raises(SubmissionFailed, match="no such jar"):
        failing.begin()
    assert len(fences(failing)) == 1


@dataclass
class FailsOver(SimHdfs):
    """A NameNode's clock that is behind, from a failover on."""

    behind: timedelta = timedelta()

    def now(self) -> datetime:
        return super().now() - self.behind


@dataclass
class YoungYarn(SimYarn):
    """A ResourceManager that became active half a minute ago."""

    asked: list[timedelta] = field(default_factory=list)

    def confirm_absence(self, of: str, age: timedelta, settled: timedelta) -> None:
        self.asked.append(age)
        if timedelta(seconds=30) <= age:
            raise Unavailable(f"it became active 30s ago and may not have recovered {of} yet")


def test_how_old_a_submission_is_no_namenode_tells(life: Life) -> None:
    """Both services fail over while the client runs, and the NameNode that answers now is four minutes behind."""
    hdfs, yarn, a_minute = FailsOver(life.clock), YoungYarn(life.clock), timedelta(minutes=1)
    life.use(hdfs, yarn=yarn)

    def fail_over() -> None:
        life.clock.ahead += a_minute
        hdfs.behind = timedelta(minutes=4)

    life.engine.ends, life.engine.at_submit = [FAILS], fail_over
    with pytest.raises(SubmissionFailed):
        life.begin()
    (age,) = yarn.asked
    assert a_minute <= age < 2 * a_minute
    assert len(fences(life)) == 1, "its application may yet be recovered"


def test_an_outage_of_minutes_is_reported_in_one_line(life: Life) -> None:
    """Each attempt begins with the step that it takes, and ends without a conclusion."""
    refusals = [Unavailable("no KDC answers")] * 50

    def away() -> None:
        if refusals:
            raise refusals.pop()

    life.kdc.at_request = away
    told: list[str] = []
    Reconciler(life.run, tell=told.append).run(Mode.ENSURE)
    assert [line.split(":")[0] for line in told[:2]] == ["submit", "no conclusion"]
    assert sum("no KDC answers" in line for line in told) == 1
    assert told.count(told[0]) == 1
