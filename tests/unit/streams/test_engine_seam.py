"""Another engine than Spark lives a stream's whole life through the same reconcile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import InvalidInput, RestartAborted
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.heartbeat import Pulse
from airflow_kstream.model.plan import Phase, Report
from airflow_kstream.model.stream_policies import RestartPolicy
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.streams.adopt import adopt
from airflow_kstream.supervise.streams.desired import request_restart, set_desired
from airflow_kstream.supervise.streams.dry_run import explain
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
from tests.unit.simulated_yarn import TICKET_SPEC
from tests.unit.streams.fake_engine import FakeEngine
from tests.unit.streams.simulated_servers import CLUSTER, ONE_WEEK, SimClock, SimHdfs, SimYarn, session_of

SPEC = replace(
    TICKET_SPEC,
    application="/jobs/orders.jar",
    restart=RestartPolicy(jitter_ratio=0),
)


class Life:
    """A stream of the fake engine, and the reports about it."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.hdfs, self.yarn = SimHdfs(self.clock), SimYarn(self.clock)
        self.engine = FakeEngine(self.hdfs, self.yarn)
        self.run = StreamRun(session_of(self.hdfs, self.yarn), SPEC, self.engine)

    def reconcile(self, mode: Mode = Mode.WATCH) -> Report:
        return Reconciler(self.run, tell=lambda line: None).run(mode)

    def begin(self) -> Report:
        return self.reconcile(Mode.ENSURE)

    def want(self, state: DesiredState) -> None:
        set_desired(self.run, state, "the test says so")

    def ask_for_a_restart(self) -> None:
        request_restart(self.run, "a new jar")


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Life:
    """A stream that needs no KDC, a ticket is always available, and no patience: a wait moves its clock."""
    granted: Callable[..., timedelta] = lambda identity, cache: timedelta(hours=10)  # noqa: E731
    monkeypatch.setattr(tickets, "acquire", granted)
    life = Life()
    monkeypatch.setattr(time, "sleep", life.clock.sleep)
    return life


def done(report: Report) -> str:
    return "; ".join(action.what for action in report.done)


def test_a_stream_of_another_engine_is_submitted_once_and_found_again(life: Life) -> None:
    first = life.begin()
    assert (first.phase, first.generation) == (Phase.RUNNING, 1)
    again = life.begin()
    assert (again.application, again.done) == (first.application, ())
    assert life.engine.calls == ["checked the host", f"submitted {first.application}"]


def test_its_heartbeat_is_read_from_its_own_progress(life: Life) -> None:
    report = life.begin()
    assert report.heartbeat is not None
    assert report.heartbeat.pulse is Pulse.STARTING
    life.engine.complete_epoch(SPEC)
    report = life.reconcile()
    assert report.heartbeat is not None
    assert report.heartbeat.pulse is Pulse.HEALTHY


def test_a_restart_before_the_horizon_takes_a_savepoint_and_leaves_nothing_behind(life: Life) -> None:
    first = life.begin()
    assert first.horizon is not None
    assert first.horizon.hard is not None
    life.engine.complete_epoch(SPEC)
    life.clock.ahead += 0.8 * ONE_WEEK
    second = life.reconcile()
    assert (second.phase, second.generation) == (Phase.RUNNING, 2)
    assert "it stopped with a savepoint" in done(second)
    assert f"deleted /tmp/fake/{first.application}" in done(second)
    assert life.hdfs.now() < first.horizon.hard
    assert not any(name.startswith(f"/tmp/fake/{first.application}") for name in life.hdfs.files)


def test_a_requested_restart_happens_once(life: Life) -> None:
    life.begin()
    life.ask_for_a_restart()
    assert life.reconcile().generation == 2
    assert life.reconcile().generation == 2


def test_a_job_that_ends_by_itself_is_reported_and_started_by_the_next_ensure(life: Life) -> None:
    application = life.begin().application
    life.yarn.end(str(application))
    assert life.reconcile().phase is Phase.ENDED
    assert life.begin().generation == 2


def test_a_job_that_outlives_its_engines_stop_is_killed(life: Life) -> None:
    life.begin()
    life.engine.ignores_stops = True
    life.want(DesiredState.STOPPED)
    report = life.reconcile()
    assert report.phase is Phase.STOPPED
    assert "it was killed" in done(report)


def test_a_stopped_stream_leaves_its_claims_and_its_progress_and_no_more(life: Life) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.want(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    folders = {name.split("/")[1] for name in life.hdfs.files}
    assert folders == {"kstream", "data"}


def test_somebody_elses_application_is_adopted_whatever_its_engine(life: Life) -> None:
    theirs = life.yarn.start(frozenset({"by-hand"}))
    adopt(life.run, theirs.id)
    report = life.begin()
    assert (report.phase, report.application, report.done) == (Phase.RUNNING, theirs.id, ())


def test_a_host_without_the_engines_client_watches_and_stops_but_starts_nothing(life: Life) -> None:
    life.begin()
    life.engine.obstacle = "this host has no fake-run"
    assert life.reconcile().phase is Phase.RUNNING
    assert "can't be submitted from here: this host has no fake-run" in explain(CLUSTER, SPEC, life.engine)
    life.want(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    life.want(DesiredState.RUNNING)
    before = life.run.folder.names()
    with pytest.raises(InvalidInput, match="no fake-run"):
        life.begin()
    assert life.run.folder.names() == before, "a claim without an application keeps everybody waiting"


def test_a_forced_restart_waits_for_a_host_that_has_the_client(life: Life) -> None:
    """A forced restart goes ahead regardless of other faults: see the step's `preflight`."""
    application = life.begin().application
    life.engine.obstacle = "this host has no fake-run"
    life.clock.ahead += ONE_WEEK - timedelta(minutes=30)
    with pytest.raises(RestartAborted, match="no fake-run"):
        life.reconcile()
    assert life.yarn.application(str(application)).alive
    life.engine.obstacle = ""
    assert life.reconcile().generation == 2


def test_an_aborted_restart_gives_one_advice_and_says_that_the_stream_runs_on(life: Life) -> None:
    application = life.begin().application
    life.engine.obstacle = "this host has no fake-run."
    life.ask_for_a_restart()
    with pytest.raises(RestartAborted) as aborted:
        life.reconcile()
    said = str(aborted.value)
    assert said.endswith(
        "submit orders: this host has no fake-run; the current generation keeps running. Retrying may help."
    )
    assert "Retrying will not help" not in said
    assert life.yarn.application(str(application)).alive
