"""Leases of killed writers are recovered on a real cluster, regardless of obstacles."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.namenode import namenode_rpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import Outcome
from airflow_kstream.model.leases.limits import Pauses, RecoveryLimits
from airflow_kstream.supervise.leases.executor import LeaseRecoverer, RecoveryResources, Watcher, execute_recoveries
from airflow_kstream.supervise.leases.journal import Journal, read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from tests.live.recovering import Scene, outcomes, stuck, the_one
from tests.live.streams import await_that
from tests.live.writers import native_writer, pattern
from tests.live.writers.hadoop_says import content


def hasty(deadline: float = 900, **pauses: float) -> RecoveryLimits:
    """Return limits with some shorter waits, in seconds."""
    shorter = Pauses(**{name: timedelta(seconds=seconds) for name, seconds in pauses.items()})
    return RecoveryLimits(deadline=timedelta(seconds=deadline), pauses=shorter)


def test_every_recovery_leaves_a_record_with_its_user_reason_and_outcome(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    run = streamer.recover(streamer.targets(stuck(minicluster, folder, 3)))
    records = streamer.records(run)
    assert [record.path for record in records] == [recovery.path for recovery in run.recoveries]
    for kept, recovery in zip(records, run.recoveries, strict=True):
        assert kept.outcome is recovery.outcome is Outcome.CLOSED
        assert (kept.by.principal, kept.reason, kept.holder) == (
            minicluster.principal("streamer"),
            "its holder is dead",
            "a holder",
        )
        assert kept.by.who.startswith(f"{getuser()}@")
        assert kept.recovery["length_after"] == 100
        assert kept.to_json()["outcome"] == "closed"


def test_an_intent_whose_run_died_is_reported_as_unconfirmed(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    targets = streamer.targets(stuck(minicluster, folder, 2))
    died = Journal.begin(streamer.hdfs, streamer.journal, streamer.identity)
    died.asked({targets[0].path: None}, "to learn whether its holder is alive")
    died.intend(targets)
    minute, journal = timedelta(minutes=1), OwnFiles(streamer.hdfs)
    told = list(read_journal(journal, streamer.journal, streamer.hdfs.now() - minute))
    mine = [(kept.action, kept.outcome) for kept in told if kept.run == died.run_id]
    assert mine == [("ask", None), ("recover", Outcome.UNCONFIRMED), ("recover", Outcome.UNCONFIRMED)]
    assert list(read_journal(journal, streamer.journal, streamer.hdfs.now() + minute)) == []


def test_a_file_that_was_replaced_vanished_or_closed_since_is_left_alone(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    replaced, vanished, closed, grown = paths = stuck(minicluster, folder, 4)
    targets = streamer.targets(paths)
    streamer.hdfs.delete(replaced)
    streamer.hdfs.delete(vanished)
    with native_writer(minicluster, [replaced], 100) as living:
        assert the_one(streamer.recover(streamer.targets([closed]))).outcome is Outcome.CLOSED
        targets[3] = replace(targets[3], expected=replace(targets[3].expected, length=99))
        run = streamer.recover(targets)
        assert [recovery.outcome for recovery in run.recoveries] == [
            Outcome.CHANGED, Outcome.GONE, Outcome.ALREADY_CLOSED, Outcome.CHANGED,
        ]  # fmt: skip
        assert [recovery.asked for recovery in run.recoveries] == [0, 0, 0, 0]
        assert "another file is at its path" in run.recoveries[0].why
        assert "it grew" in run.recoveries[3].why
        assert streamer.state(replaced).is_open
        living.kill()
    assert streamer.state(grown).is_open


def test_recovery_requests_nothing_without_a_folder_for_its_journal(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    targets = streamer.targets([path])
    recoverer = Counting(namenode_rpc(streamer.cluster, streamer.identity))
    with (
        closing(Journal.begin(streamer.hdfs, "/nobody-s", streamer.identity)) as journal,
        closing(recoverer),
        pytest.raises(Denied, match="Permission denied"),
    ):
        execute_recoveries(
            targets,
            RecoveryResources(streamer.rpc, recoverer, streamer.jmx.health, journal),
            RecoveryLimits(),
            Watcher(),
        )
    assert recoverer.asked == []


@dataclass
class Counting:
    """A recoverer that keeps the requests that it got; `before` runs before each batch."""

    recoverer: LeaseRecoverer
    before: Callable[[], object] = lambda: None
    size: int | None = None

    def __post_init__(self) -> None:
        self.asked: list[str] = []

    @property
    def batch(self) -> int:
        return self.size or self.recoverer.batch

    @property
    def latency(self) -> float:
        return self.recoverer.latency

    def request_recovery(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        self.before()
        self.asked += paths
        return self.recoverer.request_recovery(paths)

    def close(self) -> None:
        self.recoverer.close()


def before_batch(number: int, what: Callable[[], object]) -> Callable[[Cluster, Identity], Counting]:
    """Return native recoverers that do something right before the batch of that number."""

    def recoverer(found: Cluster, identity: Identity) -> Counting:
        counting = Counting(namenode_rpc(found, identity), size=20)
        batches = iter(range(1, 1_000_000))
        counting.before = lambda: what() if next(batches) == number else None
        return counting

    return recoverer


def test_a_failover_in_the_middle_loses_no_file(minicluster: Minicluster, streamer: Scene, folder: str) -> None:
    targets = streamer.targets(stuck(minicluster, folder, 100))
    run = streamer.recover(targets, recoverer=before_batch(2, minicluster.failover))
    assert outcomes(run) == {Outcome.CLOSED: 100}


def test_a_namenode_that_dies_in_the_middle_loses_no_file(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    targets = streamer.targets(stuck(minicluster, folder, 60))
    active = minicluster.active_namenode()

    def crash() -> None:
        minicluster.kill(active)
        threading.Thread(target=minicluster.failover).start()

    try:
        run = streamer.recover(targets, recoverer=before_batch(2, crash))
    finally:
        await_that(lambda: minicluster.active_namenode() != active, "the other NameNode is active")
        minicluster.start(active)
    assert outcomes(run) == {Outcome.CLOSED: 60}


def test_a_safe_mode_that_is_left_soon_is_waited_for(minicluster: Minicluster, streamer: Scene, folder: str) -> None:
    targets = streamer.targets(stuck(minicluster, folder, 60))

    def safe_mode() -> None:
        minicluster.hdfs("dfsadmin", "-safemode", "enter")
        threading.Thread(target=minicluster.hdfs, args=("dfsadmin", "-safemode", "leave")).start()

    # A recovery that had begun before could only begin again 90 s later.
    run = streamer.recover(targets, hasty(health=240), recoverer=before_batch(1, safe_mode))
    assert outcomes(run) == {Outcome.CLOSED: 60}


def test_a_safe_mode_that_stays_ends_the_run_with_every_file_accounted_for(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    """In safe mode the NameNode neither recovers a lease nor lets a record be written."""
    targets = streamer.targets(stuck(minicluster, folder, 60))
    leave = threading.Timer(20, minicluster.hdfs, ("dfsadmin", "-safemode", "leave"))

    def safe_mode() -> None:
        minicluster.hdfs("dfsadmin", "-safemode", "enter")
        leave.start()

    try:
        run = streamer.recover(targets, hasty(health=1, deadline=6), recoverer=before_batch(2, safe_mode))
    finally:
        leave.join()
    assert run.stopped == "the NameNode is in safe mode"
    assert sum(outcomes(run).values()) == 60
    assert outcomes(run)[Outcome.NOT_TRIED] >= 20
    assert not outcomes(run).keys() - {Outcome.CLOSED, Outcome.GAVE_UP, Outcome.UNCONFIRMED, Outcome.NOT_TRIED}
    assert {kept.path: kept.outcome for kept in streamer.records(run)} == {
        recovery.path: recovery.outcome for recovery in run.recoveries
    }


def test_with_the_only_datanode_paused_it_is_given_up_and_a_later_run_closes_it(
    minicluster: Minicluster, streamer: Scene, folder: str
) -> None:
    (path,) = stuck(minicluster, folder, 1)
    targets = streamer.targets([path])
    minicluster.pause("datanode")
    try:
        with closing(namenode_rpc(streamer.cluster, streamer.identity)) as recoverer:
            resources = RecoveryResources(
                streamer.rpc,
                recoverer,
                streamer.jmx.health,
                Unwritten.begin(streamer.hdfs, streamer.journal, streamer.identity),
            )
            recovery = the_one(execute_recoveries(targets, resources, hasty(deadline=20, retry_after=3), Watcher()))
        fingerprint = streamer.state(path).fingerprint
    finally:
        minicluster.resume("datanode")
    assert recovery.outcome is Outcome.GAVE_UP
    assert recovery.asked >= 2
    assert f"its block {targets[0].expected.block_id} is on localhost, last reported" in recovery.why
    assert "recovery started" in recovery.why
    assert fingerprint == targets[0].expected, "a recovery under way must not look like a writer's progress"
    assert the_one(streamer.recover(targets, hasty(retry_after=3))).outcome.settled
    assert content(minicluster, path) == pattern(100)


class Unwritten(Journal):
    """A journal in memory: this cluster has no other DataNode to write it to."""

    def _write(self, kind: str, lines: Sequence[bytes], timeouts: timedelta = timedelta(0)) -> None:
        return None


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Make SIGINT interrupt the test, which ignores it if a shell has started it in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_nothing_half_told(minicluster: Minicluster, streamer: Scene, folder: str) -> None:
    targets = streamer.targets(stuck(minicluster, folder, 200))
    recoverer = before_batch(2, lambda: signal.raise_signal(signal.SIGINT))
    run = streamer.recover(targets, recoverer=recoverer)
    assert run.interrupted
    assert [recovery.path for recovery in run.recoveries] == [target.path for target in targets]
    for recovery in run.recoveries:
        assert (recovery.outcome is Outcome.NOT_TRIED) == (recovery.asked == 0)
    assert Outcome.NOT_TRIED in outcomes(run)
    told = {kept.path: kept.outcome for kept in streamer.records(run)}
    assert told == {recovery.path: recovery.outcome for recovery in run.recoveries}
    assert all(recovery.outcome.settled for recovery in streamer.recover(targets).recoveries)


@pytest.mark.parametrize(
    ("limits", "seconds"), [(RecoveryLimits(), 30), (RecoveryLimits.unlimited(), 5)], ids=["default", "none"]
)
def test_a_thousand_files_of_a_killed_writer_are_closed_in_time(
    minicluster: Minicluster, streamer: Scene, folder: str, limits: RecoveryLimits, seconds: float
) -> None:
    targets = streamer.targets(stuck(minicluster, folder, 1000))
    started = time.monotonic()
    run = streamer.recover(targets, limits)
    took = time.monotonic() - started
    assert outcomes(run) == {Outcome.CLOSED: 1000}
    assert len(streamer.records(run)) == 1000
    # The figure is for a machine that does nothing else, and is measured by `benchmarks/leases.py`.
    assert took < 10 * seconds
