"""A job that somebody else submitted is watched: its checkpoints tell, and what it can't replace is foretold.

Its keytab gives its processes tokens for ever. New TaskManagers start with those of its launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from getpass import getuser

from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.flink import JOB_MANAGER, TASK_MANAGER, empty_the_nodes_cache
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Adoption, Claim, ClaimCredentials, Desired, StreamId
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import CredentialLook, Observation
from airflow_kstream.model.streams.plan import Step
from airflow_kstream.model.streams.stall import Heartbeat, Pulse
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.pulse.heartbeat import heartbeat, overlong
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from tests.live.flink import FlinkRunning, await_checkpoints, launch_token, running
from tests.live.streams import await_that
from tests.real.flink.conftest import NewRun

# YARN's words have whole seconds, and the job is taken for older than its start.
FORETOLD = timedelta(seconds=15)


@dataclass
class Watcher:
    """One who adopted the job, and looks again and again with the rights of `session`."""

    session: ClusterSession
    living: FlinkRunning
    lifetimes: TokenLifetimes
    engine: FlinkEngine = field(default_factory=FlinkEngine)
    memory: SignMemory = field(default_factory=SignMemory)
    beat: Heartbeat | None = None
    step: Step | None = None

    @property
    def spec(self) -> FlinkStreamSpec:
        run = self.living.run
        return FlinkStreamSpec(
            run.name,
            KeytabCredentials(run.minicluster.principal("streamer"), str(run.minicluster.keytab("streamer"))),
            f"{run.home}/rows.jar",
            (f"{run.home}/checkpoints",),
            conf={"execution.checkpointing.interval": "2s"},
            restart=RestartPolicy(adopt_margin=timedelta()),
        )

    def look(self) -> Observation:
        spec, stream = self.spec, StreamId(self.living.run.name, "/kstream")
        app = self.session.yarn.application(self.living.application)
        claim = Claim(
            generation=1,
            nonce="adopted",
            claimed_at=app.started or datetime.now(UTC),
            claimed_by="a test",
            spec_fingerprint=fingerprint(spec),
            spec=spec,
            positions={},
            credentials=ClaimCredentials(self.lifetimes),
            adoption=Adoption(app.id, app.started, self.living.run.job),
        )
        newest = Newest(claim, app)
        return Observation(
            stream,
            self.session.hdfs.now(),
            Desired(),
            claim,
            frozenset(),
            ((1, app),),
            self.engine.progress(self.session, spec, newest),
            credentials=CredentialLook(workers=self.engine.worker_tokens(self.session, newest, ())),
        )

    def pulse(self) -> Pulse:
        seen = self.look()
        looks = self.memory.look(seen, overlong(self.spec.heartbeat, seen))
        self.beat = heartbeat(self.spec.heartbeat, seen, looks)
        self.step = next_step(self.spec, seen, looks, Mode.WATCH)
        return self.beat.pulse

    def horizon(self) -> Horizon:
        ends = horizon_of(self.spec, self.look())
        assert ends is not None
        return ends


@contextmanager
def without_a_proxy(session: ClusterSession) -> Iterator[ClusterSession]:
    """The session of one to whom no ResourceManager answers, so that no JobManager does."""
    yarn = ResourceManager(("http://127.0.0.1:9",), session.identity, session.cluster.tls)
    try:
        yield replace(session, yarn=yarn)
    finally:
        yarn.close()


def test_no_new_taskmanager_starts_once_the_launch_token_is_dead_as_foretold(
    new_run: NewRun, session: ClusterSession, flinks: Minicluster
) -> None:
    """The job goes on until it loses one: then YARN and Flink both call it running, and nothing of it runs."""
    lifetimes = TokenLifetimes(flinks.plan.renew_interval, flinks.plan.max_lifetime)
    with running(session, new_run("starving")) as living:
        watcher = Watcher(session, living, lifetimes)
        foretold = watcher.horizon().replacement
        assert foretold is not None
        assert foretold.until is not None

        token = launch_token(living.place(JOB_MANAGER))
        dead = token.issued + flinks.plan.renew_interval
        await_that(lambda: datetime.now(UTC) > dead, "the launch token is dead")
        await_checkpoints(living, 1)
        assert watcher.pulse() is Pulse.HEALTHY
        assert not stops(watcher), "the loss of a replacement ends nothing"
        assert launch_token(living.place(JOB_MANAGER)) == token
        with without_a_proxy(session) as alone:
            newest = Newest(watcher.look().claim, watcher.look().current)
            (point,) = FlinkEngine().progress(alone, watcher.spec, newest)
            assert point.position.commit > 0
            assert point.writers == {getuser()}

        empty_the_nodes_cache(flinks.root, living.application)
        (process,) = living.processes(TASK_MANAGER)
        process.kill()
        await_that(lambda: f"expected renewal time: {moment(dead)}" in living.log(), "YARN tells why none starts")
        assert abs(foretold.until - dead) <= FORETOLD
        await_that(lambda: watcher.pulse() is Pulse.STALLED, "its watcher finds that nothing of it works")
        assert watcher.beat is not None
        assert watcher.beat.starving
        assert "no TaskManager works for it" in watcher.beat.why
        assert "expected renewal time" in watcher.beat.why
        assert stops(watcher), "YARN's words name the token"
        assert session.yarn.application(living.application).state == ApplicationState.RUNNING


def stops(watcher: Watcher) -> bool:
    """Return whether a dead token is why its task would restart it: as long as nothing acts on such jobs, its step says
    so and is not carried out."""
    return watcher.step is not None and "its new workers have a dead token" in watcher.step.why


def moment(when: datetime) -> str:
    return f"{when.astimezone():%Y-%m-%d %H:%M:%S}"
