"""What looks like a stall and is none: under `on_stall: restart`, none of it ends a healthy generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.pulse.heartbeat import CONFIRMS
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.streams import await_commits, await_that, rate_stream, reconciler, stop
from tests.tables import Row

pytestmark = pytest.mark.stalls

FLOOR = timedelta(seconds=10)
STALLS = HeartbeatPolicy(
    start_timeout=timedelta(seconds=30), stall_floor=FLOOR, stall_factor=1.0, on_stall=OnStall.RESTART
)


@dataclass
class Kept:
    """A stream whose task acts on each stall that its watcher finds, as Airflow's trigger lets it."""

    supervisor: Reconciler
    steering: Path
    pulses: list[Pulse] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def steer(self, how: str) -> None:
        draft = self.steering.with_suffix(".new")
        draft.write_text(how)
        draft.rename(self.steering)

    def keep(self, until: Callable[[], bool], what: str) -> None:
        """Watch, and act on what is found, until it is over."""
        watch, next_examination = Watch(self.supervisor.session, again=True), 0.0

        def looked() -> bool:
            nonlocal next_examination
            verdict = watch.round([self.name])[self.name]
            if verdict.progress.heartbeat and [verdict.progress.heartbeat.pulse] != self.pulses[-1:]:
                self.pulses.append(verdict.progress.heartbeat.pulse)
            if verdict.progress.stall and time.monotonic() >= next_examination:
                next_examination = time.monotonic() + (verdict.progress.stall.lasts * CONFIRMS).total_seconds()
                self._act(verdict.progress.stall)
            return until()

        await_that(looked, what)

    def _act(self, stall: object) -> None:
        try:
            report = self.supervisor.run(Mode.WATCH, stall=stall)  # type: ignore[arg-type]
        except KstreamError as error:
            self.findings.append(str(error))
        else:
            self.findings += [done.why for done in report.done]

    @property
    def name(self) -> str:
        return self.supervisor.spec.name

    def lasts(self, seconds: float) -> Callable[[], bool]:
        ends = time.monotonic() + seconds
        return lambda: time.monotonic() >= ends

    def committed(self) -> int:
        return self.supervisor.session.hdfs.checkpoint(self.supervisor.spec.checkpoints[0]).position.commit

    def further(self) -> Callable[[], bool]:
        """Return whether a batch that was not planned yet has been committed."""
        target = self.committed() + 3
        return lambda: self.committed() >= target


def steered(name: str, steering: Path) -> StreamSpec:
    usual = rate_stream(name, TicketCredentials())
    return replace(
        usual,
        application=usual.application.replace("rate.py", "steered.py"),
        arguments=(*usual.arguments, str(steering)),
        heartbeat=STALLS,
    )


@contextmanager
def kept(minicluster: Minicluster, name: str, folder: Path, how: str = "usual") -> Iterator[Kept]:
    steering = folder / "steering"
    steering.write_text(how)
    with reconciler(minicluster, steered(name, steering)) as supervisor:
        supervisor.run()
        stream = Kept(supervisor, steering)
        if how == "usual":
            await_commits(supervisor.session, supervisor.spec)
        yield stream
        stream.steer("usual")
        stop(supervisor)
        assert supervisor.plan(Mode.WATCH)[0].generation == 1


@pytest.fixture
def alarm(row: Callable[[str], Row]) -> Callable[[str, Kept], None]:
    """Return the function that puts a line into the table, and holds that nothing was killed."""
    add = row("false alarms")

    def told(what: str, stream: Kept) -> None:
        generation = stream.supervisor.plan(Mode.WATCH)[0].generation
        found = "; ".join(dict.fromkeys(stream.findings)) or "not examined"
        add(what, " ".join(stream.pulses), found, generation - 1)
        assert generation == 1, stream.findings

    return told


Alarm = Callable[[str, Kept], None]


@pytest.mark.parametrize(("how", "what"), [("slow", "twenty tasks one after the other"), ("skewed", "one task")])
def test_a_batch_of_ten_times_the_longest_is_examined_and_left_alone(
    minicluster: Minicluster, tmp_path: Path, alarm: Alarm, how: str, what: str
) -> None:
    """The longest batches take less than the floor, which is the threshold then."""
    with kept(minicluster, how, tmp_path) as stream:
        seconds = 10 * FLOOR.total_seconds()
        stream.steer(f"{how} {seconds:.0f}")
        further = stream.further()
        stream.keep(lambda: Pulse.STALLED in stream.pulses, "its batch counts as stalled")
        stream.steer("usual")
        stream.keep(further, "it goes on")
        alarm(f"a batch of ten times the threshold: {what}", stream)
    assert "it is slow, and does not hang: left alone" in stream.findings


def test_a_start_of_minutes_is_an_event_and_left_alone(minicluster: Minicluster, tmp_path: Path, alarm: Alarm) -> None:
    """As one that restores its state: its first batch lasts for three times what a start may."""
    with kept(minicluster, "restores", tmp_path, "slow 90") as stream:
        stream.keep(lambda: Pulse.START_STALLED in stream.pulses, "its start counts as stalled")
        stream.steer("usual")
        stream.keep(lambda: stream.committed() >= 2, "it commits")
        alarm("a first batch of three times start_timeout", stream)
    assert stream.findings == []


def test_a_datanode_that_is_paused_ends_no_batch(minicluster: Minicluster, tmp_path: Path, alarm: Alarm) -> None:
    """The batch waits for it, and so does the evidence that would have to be kept.

    HDFS's client gives its only DataNode up after 65 s, and the file 12 s later (dfs.client.socket-timeout, 5 s for
    each DataNode, 5 retries of dfs.client.block.write.locateFollowingBlock). A look lasts for up to 30 s in the pause.
    """
    with kept(minicluster, "paused", tmp_path) as stream:
        further = stream.further()
        minicluster.pause("datanode")
        try:
            stream.keep(stream.lasts(40), "the pause is over")
        finally:
            minicluster.resume("datanode")
        stream.keep(further, "it goes on")
        alarm("a DataNode that is paused for 40 s and more", stream)


def test_a_driver_that_waits_is_replaced_and_the_same_batch_once_only(minicluster: Minicluster, tmp_path: Path) -> None:
    """The control: what the others are not. It hangs in the driver's own code, for good."""
    steering = tmp_path / "steering"
    steering.write_text("usual")
    with reconciler(minicluster, steered("waits", steering)) as supervisor:
        supervisor.run()
        await_commits(supervisor.session, supervisor.spec)
        stream = Kept(supervisor, steering)
        stream.steer("waits")
        stream.keep(lambda: stream.supervisor.plan(Mode.WATCH)[0].generation == 2, "its generation is replaced")
        stream.keep(lambda: stream.pulses[-1] is Pulse.START_STALLED, "its successor hangs, too")
        stream.keep(stream.lasts(60), "a minute passes")
        assert supervisor.plan(Mode.WATCH)[0].generation == 2
        stream.steer("usual")
        stream.keep(lambda: stream.pulses[-1] is Pulse.HEALTHY, "it works again")
        stop(supervisor)
