"""Streams with `on_stall: restart` under Airflow's triggers and tasks: what hangs is replaced, and nothing else.

Time is virtual, because stalls take hours. Simulated are the servers, and the engine with what its jobs show: the real
ones are in tests/real/cluster/test_stalls.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import past_stalls
from airflow_kstream.model.streams.event import EventKind, Ledger
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall, WatchPolicy
from airflow_kstream.notifications import ledgers
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.airflow.edits import Folder
from tests.simulated.engine import HANGS, FakeEngine, FakeExaminer
from tests.simulated.fleet import Fleet

MINUTE, HOUR = 60.0, 3600.0
# An examination: three rounds of dumps.
TAKES = 20.0
# A look a minute: a day of virtual time then takes seconds.
PATIENT = WatchPolicy(every=timedelta(minutes=1), look_every=timedelta(seconds=10))
RESTARTS = HeartbeatPolicy(on_stall=OnStall.RESTART)


class BatchEngine(FakeEngine):
    """An engine that shows which batches are in flight, by stream and since when, and what hangs in them."""

    in_flight: dict[str, datetime]
    examined: Callable[[str], FakeExaminer]

    def examiner(self, session: ClusterSession, app: Application, query: str) -> FakeExaminer:
        stream = StreamId.of_tags(app.tags, session.cluster.state_dir)
        assert stream is not None
        return self.examined(stream.name)

    def _point(self, path: str) -> Checkpoint:
        point = super()._point(path)
        name = path.rpartition("/")[2]
        if name not in self.in_flight:
            return point
        number = max(point.offsets, default=-1) + 1
        return replace(point, offsets={**point.offsets, number: self.in_flight[name]})


@dataclass
class Drivers:
    """What the jobs show. `moving` are the streams whose tasks get on."""

    moving: set[str] = field(default_factory=set)
    asked: list[tuple[str, float]] = field(default_factory=list)


class Stalls(Fleet):
    """A fleet whose batches can hang: no commit comes until the stream is restarted, or let go."""

    def __init__(self, patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__(patch, caplog)
        engine = BatchEngine(self.hdfs, self.yarn)
        self.in_flight: dict[str, datetime] = {}
        engine.in_flight, engine.examined = self.in_flight, self._examined
        self.engine = self.watchers_engine = engine
        self.drivers = Drivers()

    def hang(self, *names: str) -> None:
        self.in_flight.update(dict.fromkeys(names, self.clock.now()))

    def let_go(self, *names: str) -> None:
        for name in names:
            del self.in_flight[name]
            self.engine.complete_epoch(self.specs[name])

    async def commits(self, seconds: float, *but: str) -> None:
        """Let so much time pass, in which every stream commits a batch each minute, but for these."""
        for _ in range(int(seconds / MINUTE)):
            await asyncio.sleep(MINUTE)
            for name, spec in self.specs.items():
                if name not in self.in_flight and name not in but:
                    self.engine.complete_epoch(spec)

    def restarts(self, name: str) -> int:
        return max(number for number, _ in self.generations(name)) - 1

    def _examined(self, name: str) -> FakeExaminer:
        self.drivers.asked.append((name, self.loop.time()))
        return FakeExaminer((HANGS,), str(self.loop.time()) if name in self.drivers.moving else "3 epochs")


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Stalls]:
    fleet = Stalls(monkeypatch, caplog)
    yield fleet
    fleet.loop.close()


def names(count: int) -> list[str]:
    return [f"stream-{number}" for number in range(count)]


def test_a_batch_that_hangs_is_examined_and_its_generation_replaced(fleet: Stalls) -> None:
    fleet.declare(*names(4), heartbeat=RESTARTS, watch=PATIENT)

    async def story() -> None:
        await fleet.commits(2 * MINUTE)
        fleet.hang("stream-3")
        await fleet.commits(29 * MINUTE)
        assert fleet.restarts("stream-3") == 0
        await fleet.commits(9 * MINUTE)
        assert fleet.restarts("stream-3") == 1
        fleet.let_go("stream-3")
        await fleet.commits(20 * MINUTE)

    fleet.live(story)
    looked = [name for name, _ in fleet.drivers.asked]
    assert looked == ["stream-3"] * len(looked)
    assert 2 <= len(looked) <= 6
    assert fleet.told(f"batch 3: {HANGS}") == len(looked)
    assert {name: fleet.restarts(name) for name in fleet.specs} == {name: int(name == "stream-3") for name in names(4)}
    (past,) = past_stalls(fleet.run_of("stream-3").folder.names())
    assert (past.generation, past.batch) == (1, 3)
    assert fleet.ended == {}


def test_a_slow_batch_is_examined_ever_less_often_and_never_ended(fleet: Stalls) -> None:
    """For hours: one that is ten times as long as the longest before is none."""
    fleet.declare(*names(4), heartbeat=RESTARTS, watch=PATIENT)
    fleet.drivers.moving.add("stream-3")

    async def story() -> None:
        await fleet.commits(2 * MINUTE)
        fleet.hang("stream-3")
        await fleet.commits(2 * HOUR)

    fleet.live(story)
    assert fleet.restarts("stream-3") == 0
    looked = [at for _, at in fleet.drivers.asked]
    assert 3 <= len(looked) <= 15
    assert all(later + TAKES - earlier >= 0.25 * (earlier - 2 * MINUTE) for earlier, later in pairwise(looked))


def test_an_edit_of_what_follows_a_stall_is_obeyed_by_tasks_deferred_before(fleet: Stalls, tmp_path: Path) -> None:
    fleet.declare(*names(4), watch=PATIENT)
    folder = Folder(tmp_path)
    folder.write(*fleet.specs.values())
    folder.look()

    async def story() -> None:
        await fleet.commits(2 * MINUTE)
        fleet.hang("stream-3")
        await fleet.commits(20 * MINUTE)
        assert (fleet.drivers.asked, fleet.wakings) == ([], [])
        folder.write(*(replace(spec, heartbeat=RESTARTS) for spec in fleet.specs.values()))
        assert folder.look() == names(4)
        await fleet.commits(40 * MINUTE)
        assert fleet.restarts("stream-3") == 1
        fleet.let_go("stream-3")
        await fleet.commits(20 * MINUTE)

    fleet.live(story)
    assert set(fleet.woken()) == {"stream-3"}
    assert {name: fleet.restarts(name) for name in fleet.specs} == {name: int(name == "stream-3") for name in names(4)}


def test_a_stall_whose_successor_could_not_start_is_an_event(fleet: Stalls) -> None:
    fleet.declare(*names(4), heartbeat=RESTARTS, watch=PATIENT)

    async def story() -> None:
        await fleet.commits(2 * MINUTE)
        fleet.hang("stream-3")
        fleet.engine.obstacle = "spark-submit is not on the PATH"
        await fleet.commits(45 * MINUTE)
        assert fleet.restarts("stream-3") == 0
        assert fleet.told("stream-3: its restart is blocked: ") == 1
        assert _told_of(fleet, "stream-3") >= {EventKind.STALLED, EventKind.BLOCKED}
        fleet.engine.obstacle = ""
        await fleet.commits(30 * MINUTE)
        assert fleet.restarts("stream-3") == 1
        fleet.let_go("stream-3")
        await fleet.commits(5 * MINUTE)
        assert _told_of(fleet, "stream-3") == set()

    fleet.live(story)


def _told_of(fleet: Stalls, name: str) -> set[EventKind]:
    """Return the kinds of events of a stream that last, as the store has them."""
    stored = fleet.store.get((asset_uri("simulated", name), ledgers.KEY))
    return {trouble.kind for trouble in Ledger.from_json(stored).lasting.values()}
