"""An end while HDFS was in safe mode: whose it is, and what proves that."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.hdfs_health import SafeMode
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.ends.after_end import in_safe_mode, refused
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers.memory import Memory
from tests.simulated.ended_lives import BARE, CODE, end, recorded
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import SimHdfs
from tests.simulated.values import changed
from tests.simulated.yarn import START, past_end

MINUTE = timedelta(minutes=1)
# As a client of ours says it.
WORDS = (
    "http://nn1:9870: SafeModeException: Cannot issue delegation token. Name node is in safe mode; http://nn2:9870: "
    "StandbyException: Operation category READ is not supported in state standby"
)
AN_HOUR = SafeMode(START, START + 60 * MINUTE)
BARE_END = past_end(1, START + 3 * MINUTE, EndKind.CODE)


@dataclass
class Hdfs(SimHdfs):
    """An HDFS that is in safe mode until that moment."""

    safe_until: datetime | None = None

    def list(self, path: str) -> tuple[FileStatus, ...]:
        if self.safe_until and self.clock.now() < self.safe_until:
            raise Unavailable(WORDS, tried=f"list {path}")
        return super().list(path)


@pytest.fixture
def worked(life: Life) -> Life:
    """A stream that has committed."""
    life.use(Hdfs(life.clock))
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.reconcile()
    return life


def safe_for(life: Life, minutes: int) -> None:
    assert isinstance(life.hdfs, Hdfs)
    life.hdfs.safe_until = life.clock.now() + minutes * MINUTE


@pytest.mark.parametrize(("diagnostics", "shared"), [(BARE, True), (CODE, False)])
def test_an_end_without_an_error_in_safe_mode_is_the_environments(worked: Life, diagnostics: str, shared: bool) -> None:
    """Its driver could leave no word on HDFS, and its NodeManager no log. A job whose error is known ended of that."""
    end(worked, diagnostics)
    safe_for(worked, 2)
    told: list[str] = []
    report = Reconciler(worked.run, tell=told.append).run(Mode.WATCH)
    (noted,) = recorded(worked)
    assert (noted.shared, noted.clues.silent, noted.costs) == (shared, "HDFS" if shared else "", not shared)
    assert any("no conclusion: " in line and "SafeModeException" in line for line in told)
    assert ("it is the environment's, because HDFS did not answer" in told) is shared
    assert (report.phase is Phase.ENDED) is not shared


def test_without_a_refusal_nobody_proves_anything(worked: Life) -> None:
    end(worked, BARE)
    assert worked.reconcile(Mode.WATCH).phase is Phase.ENDED
    (noted,) = recorded(worked)
    assert (noted.kind, noted.shared) == (EndKind.CODE, False)


def test_a_task_learns_from_its_watcher_that_hdfs_was_in_safe_mode(worked: Life) -> None:
    memory, now = Memory(), worked.clock.now()
    for minute in range(5):
        memory = memory.failed(f"list /kstream on http://nn:9870: {WORDS}. Retrying may help.", now + minute * MINUTE)
    handed_on = Memory.from_json(json.loads(json.dumps(memory.to_json())))
    assert handed_on.safe_mode == SafeMode(now, now + 4 * MINUTE)
    end(worked, BARE)
    Reconciler(worked.run, tell=lambda line: None).run(Mode.WATCH, safe_mode=handed_on.safe_mode)
    assert recorded(worked)[0].shared
    assert Memory.from_json({"safe_mode": None}).safe_mode is None


def test_refusals_that_lie_far_apart_are_of_two_safe_modes() -> None:
    first = refused(None, START)
    assert first == SafeMode(START, START)
    assert refused(first, START + 10 * MINUTE) == SafeMode(START, START + 10 * MINUTE)
    assert refused(first, START + 60 * MINUTE) == SafeMode(START + 60 * MINUTE, START + 60 * MINUTE)
    assert Memory().failed("Connection refused", START).safe_mode is None


@pytest.mark.parametrize(
    ("other", "silent"),
    [
        ({}, "HDFS"),
        ({"at": START + 69 * MINUTE}, "HDFS"),
        ({"at": START + 71 * MINUTE}, ""),
        ({"at": START - 11 * MINUTE}, ""),
        ({"fingerprint": "java.lang.IllegalStateException: x"}, ""),
        ({"log_error": "ValueError: x"}, ""),
        ({"killed_by": "bob"}, ""),
        ({"kind": EndKind.MEMORY}, ""),
        ({"kind": EndKind.UNKNOWN}, "HDFS"),
    ],
)
def test_only_an_end_of_an_unknown_error_at_that_time_is_of_safe_mode(other: dict[str, object], silent: str) -> None:
    ended = changed(BARE_END, **other)
    assert in_safe_mode(FailurePolicy(), ended, AN_HOUR).clues.silent == silent
    assert in_safe_mode(FailurePolicy(), ended, None) == ended


def test_a_job_that_never_worked_is_not_excused_by_safe_mode(life: Life) -> None:
    life.use(Hdfs(life.clock))
    life.begin()
    end(life, BARE)
    safe_for(life, 2)
    assert life.reconcile(Mode.WATCH).phase is Phase.ENDED
    assert not recorded(life)[0].shared
    assert list(life.yarn.apps.values())[-1].state is ApplicationState.FAILED
