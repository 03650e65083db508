"""Files are judged while others are recovered: each as soon as it is due, and no earlier than there is room for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.leases.lease import Outcome, Target
from airflow_kstream.model.leases.limits import RecoveryLimits
from airflow_kstream.model.leases.open_file import FileState
from airflow_kstream.supervise.leases.executor import RecoveryRun
from tests.simulated.lease_hdfs import MIDNIGHT, SECOND, SimulatedHdfs


@dataclass
class SimulatedJudge:
    """A judge that grants what is due; `lasts` is how long it takes after its look, `errors` come first."""

    hdfs: SimulatedHdfs
    due_at: dict[str, timedelta]
    lasts: timedelta = timedelta(0)
    keeps_states: bool = True
    errors: list[KstreamError] = field(default_factory=list)
    asked_for: list[int] = field(default_factory=list)
    times: dict[str, timedelta] = field(default_factory=dict)

    def due(self) -> timedelta | None:
        return max(timedelta(0), min(self.due_at.values()) - self.hdfs.time) if self.due_at else None

    def judged(self, most: int) -> Sequence[tuple[Target, FileState | None]]:
        self.asked_for.append(most)
        if self.errors:
            raise self.errors.pop(0)
        paths = [path for path, due in self.due_at.items() if due <= self.hdfs.time][:most]
        expected = {path: self.hdfs.target(path) for path in paths}
        states = self.hdfs.states(paths)
        self.times |= dict.fromkeys(paths, self.hdfs.time)
        self.hdfs.wait(self.hdfs.stop, self.lasts)
        self.due_at = {path: due for path, due in self.due_at.items() if path not in paths}
        return [
            (expected[path], state if self.keeps_states and isinstance(state, FileState) else None)
            for path, state in zip(paths, states, strict=True)
        ]


@pytest.fixture
def hdfs() -> SimulatedHdfs:
    hdfs = SimulatedHdfs()
    hdfs.add(*(f"/data/{number:04}" for number in range(1000)))
    return hdfs


def judge(hdfs: SimulatedHdfs, seconds: float = 0, **traits: Any) -> SimulatedJudge:
    """Return a judge of all files, which are due one after the other within these seconds."""
    due = {path: number * seconds / len(hdfs.files) * SECOND for number, path in enumerate(hdfs.files)}
    return SimulatedJudge(hdfs, due, **traits)


def outcomes(run: RecoveryRun) -> Counter[Outcome]:
    return Counter(recovery.outcome for recovery in run.recoveries)


def test_the_first_files_are_closed_before_the_last_are_judged(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs, seconds=20)
    run = hdfs.recover(RecoveryLimits.unlimited(), source=judging)
    assert outcomes(run) == {Outcome.CLOSED: 1000}
    last = max(judging.times.values())
    closed = [row.started - MIDNIGHT + row.seconds * SECOND for row in run.recoveries if row.started]
    assert min(closed) < last / 2
    assert max(closed) < last + 8 * SECOND


def test_the_look_that_decided_is_the_reading_before_the_request(hdfs: SimulatedHdfs) -> None:
    """One reading decides, and one shows that it is closed."""
    hdfs.recover(RecoveryLimits.unlimited(), source=judge(hdfs))
    assert set(hdfs.times_read.values()) == {2}


@pytest.mark.parametrize("traits", [{"lasts": 3 * SECOND}, {"keeps_states": False}])
def test_a_look_that_is_old_or_was_followed_by_a_probe_is_repeated(hdfs: SimulatedHdfs, traits: dict[str, Any]) -> None:
    assert outcomes(hdfs.recover(RecoveryLimits.unlimited(), source=judge(hdfs, **traits))) == {Outcome.CLOSED: 1000}
    assert min(hdfs.times_read.values()) >= 3


def test_no_more_files_are_judged_than_there_is_room_for(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs)
    assert outcomes(hdfs.recover(source=judging)) == {Outcome.CLOSED: 1000}
    assert judging.asked_for[0] == 32
    assert max(judging.asked_for) <= 1000


def test_a_judge_whose_servers_are_away_is_asked_again(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs, seconds=10)
    judging.errors = [Unavailable("no active NameNode found")] * 3
    assert outcomes(hdfs.recover(source=judging)) == {Outcome.CLOSED: 1000}


def test_a_judge_that_cannot_go_on_ends_the_run_and_no_recovery(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs, seconds=10)
    hdfs.at(5, lambda _: judging.errors.append(Denied("Permission denied: /kstream")))
    run = hdfs.recover(source=judging)
    assert "further files can't be judged: Permission denied" in run.stopped
    assert outcomes(run).keys() == {Outcome.CLOSED}
    assert 0 < len(run.recoveries) < 1000


def test_a_judge_whose_servers_stay_away_ends_the_run_after_the_deadline(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs)
    judging.errors = [Unavailable("no active NameNode found")] * 1000
    run = hdfs.recover(RecoveryLimits(deadline=60 * SECOND), source=judging)
    assert "can't be judged" in run.stopped
    assert 60 * SECOND <= hdfs.time < 90 * SECOND


def test_nothing_is_judged_after_the_run_was_stopped(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs, seconds=30)
    hdfs.at(12, lambda cluster: setattr(cluster, "dead", 20))
    run = hdfs.recover(RecoveryLimits.unlimited(), source=judging)
    assert "20 DataNodes are dead" in run.stopped
    assert max(judging.times.values()) < 21 * SECOND
    assert judging.due_at


def test_others_see_a_run_at_work_while_it_waits_for_its_second_looks(
    hdfs: SimulatedHdfs,
) -> None:
    judging = judge(hdfs)
    judging.due_at = dict.fromkeys(hdfs.files, 60 * SECOND)
    hdfs.recover(RecoveryLimits.unlimited(), source=judging)
    assert all(10 * SECOND <= later - earlier <= 20 * SECOND for earlier, later in pairwise([0 * SECOND, *hdfs.beats]))
    assert 45 * SECOND <= max(hdfs.beats) <= 61 * SECOND


def test_an_interrupt_ends_the_wait_for_files_that_are_not_due(hdfs: SimulatedHdfs) -> None:
    judging = judge(hdfs, seconds=60)
    hdfs.at(5, lambda cluster: cluster.stop.set())
    run = hdfs.recover(RecoveryLimits.unlimited(), source=judging)
    assert run.interrupted
    assert hdfs.time < 7 * SECOND
