"""The demonstration: streams, with a keytab and without, outlive their delegation tokens; a control doesn't."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_kstream.dags.ids import stream_id
from airflow_kstream.demo import jobs, promises
from airflow_kstream.demo.config import CONNECTION, STREAMER, DemoConfig, table
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.control import Control
from airflow_kstream.demo.crashes import Crashes
from airflow_kstream.demo.environment import Environment, Shipper, make_environment, session_of
from airflow_kstream.demo.history import History, Loss
from airflow_kstream.demo.promises import Promise
from airflow_kstream.minicluster.flink import lose_taskmanager
from airflow_kstream.model.errors import MiniclusterError, Unavailable
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import EngineName, StreamSpec
from airflow_kstream.policy.streams.pulse.heartbeat import verified
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import set_desired

_LOOK_EVERY = 1.0
# Seconds until a stream's first commit.
_START = 600
# The first token is a few seconds older than its application.
_AFTER_DEATH = timedelta(seconds=5)
# A topic that is quiet for this long counts as drained; a restart meanwhile would be harmless but confusing.
_DRAIN = timedelta(seconds=20)


@dataclass
class Demo:
    """One run of the demonstration. `promises` is its outcome."""

    plan: DemoConfig
    console: DemoConsole
    promises: list[Promise] = field(default_factory=list)

    def run(self) -> bool:
        """Run it to the end and return True if every promise was kept. Everything that it started is stopped."""
        with ExitStack() as stack:
            environment = make_environment(self.plan, self.console, stack)
            self._histories = [History(spec) for spec in environment.streams]
            shipper = Shipper(environment, stack)
            session = session_of(environment.minicluster, stack, environment.streams[0])
            control = Control(environment, self.console)
            self._start(environment, session, control)
            self._watch(environment, session, control)
            self._finish(environment, session, shipper)
            self.promises.append(control.promise(session))
            self.console.conclude(self.promises)
            if not self.plan.once:
                self._stay(environment)
        return all(promise.kept for promise in self.promises)

    def _start(self, environment: Environment, session: ClusterSession, control: Control) -> None:
        """Start the stream that gets fresh tokens, and the others once it has committed.

        Until its first commit its driver is not known to take tokens, and without that its restart comes at half of its
        tokens' life. Four drivers that start at once on two slow cores need longer.
        """
        pushed = next(history for history in self._histories if history.spec.credentials.refresh)
        self._unpause(environment, pushed.spec)
        self._await(lambda: self._has_committed(pushed, session), f"commit ({pushed.spec.name})", _START)
        control.submit()
        for history in self._histories:
            if history is not pushed:
                self._unpause(environment, history.spec)

    def _has_committed(self, history: History, session: ClusterSession) -> bool:
        self._observe_all(session)
        return history.newest is not None and history.newest.first_commit is not None

    def _unpause(self, environment: Environment, spec: StreamSpec) -> None:
        dag_id = stream_id(CONNECTION, spec.name)
        environment.home.api().unpause_dag(dag_id)
        self.console.say(f"its DAG {dag_id} is unpaused", spec.name)

    def _watch(self, environment: Environment, session: ClusterSession, control: Control) -> None:
        """Watch until those that need no restart have outlived their tokens often enough, and no other is mid-restart.

        Crashes happen to the stream that is restarted.
        """
        crashes = Crashes(environment.supervisor, self.console) if self.plan.with_crashes else None
        losses: list[Loss] = []
        unrestarted = [history for history in self._histories if _needs_no_restart(history.spec)]
        restarted = [history for history in self._histories if history not in unrestarted]
        failed_over = False
        while True:
            pushes = self._confirmed()
            now = self._observe_all(session)
            if crashes:
                crashes.strike(restarted[0], now)
            # A JobManager that lost a TaskManager answers no push for a minute: one is killed right after an answer.
            calm = self.plan.engine is EngineName.SPARK or self._confirmed() > pushes
            if not failed_over and calm and self._all_lived_enough(self._histories, now, 1):
                failed_over = self._fail_over(environment)
                control.lose_taskmanager(session)
                flinks = [history for history in self._histories if history.spec.engine is EngineName.FLINK]
                losses = [self._lose_taskmanager(environment, session, history) for history in flinks]
            for loss in losses:
                if loss.look():
                    self.console.say("another TaskManager works", loss.history.spec.name)
            enough = failed_over and self._all_lived_enough(unrestarted, now, self.plan.lives)
            settled = all(_settled(history, now) for history in restarted) and all(loss.works for loss in losses)
            # On a machine that is always restarting, one max-lifetime later.
            if enough and (settled or self._all_lived_enough(self._histories, now, self.plan.lives + 1)):
                break
            time.sleep(_LOOK_EVERY)
        lives, max_lifetime = self.plan.lives, self.plan.max_lifetime
        self.promises += [promises.lived_through(history, now, lives, max_lifetime) for history in unrestarted]
        self.promises += [promises.restarted_in_time(history, lives) for history in restarted]
        self.promises += [promises.replaced(loss, max_lifetime) for loss in losses]
        if crashes:
            self.promises.append(crashes.promise())

    def _observe_all(self, session: ClusterSession) -> datetime:
        for history in self._histories:
            try:
                observation = _observe(session, history)
            except Unavailable:
                # The failover is part of the show; the next look is a second away.
                continue
            for line in history.take(observation):
                self.console.say(line, history.spec.name)
        return session.hdfs.now()

    def _confirmed(self) -> int:
        return sum(len(history.confirmed) for history in self._histories)

    def _fail_over(self, environment: Environment) -> bool:
        active = environment.minicluster.failover()
        self.console.say(
            f"the first tokens are dead; NameNode failover, {active} is active now: every client reconnects"
        )
        return True

    def _lose_taskmanager(self, environment: Environment, session: ClusterSession, history: History) -> Loss:
        application = (history.newest and history.newest.application) or ""
        killed = lose_taskmanager(environment.minicluster.root, application)
        self.console.say("SIGKILL to its TaskManager, on a node that has nothing of it left", history.spec.name)
        return Loss(history, application, session.hdfs.now(), len(killed))

    def _all_lived_enough(self, histories: Iterable[History], now: datetime, lives: int) -> bool:
        """Return True if each of them, and the control, which is older, was submitted more than so many lives ago."""
        return all(self._lived_enough(history, now, lives) for history in histories)

    def _lived_enough(self, history: History, now: datetime, lives: int) -> bool:
        first = history.lives.get(1)
        return first is not None and now - first.issued > lives * self.plan.max_lifetime + _AFTER_DEATH

    def _finish(self, environment: Environment, session: ClusterSession, shipper: Shipper) -> None:
        """Stop the input, drain, stop the streams through Airflow, and compare tables with files."""
        ends = shipper.finish()
        self.console.say(f"the shipper stopped after {sum(ends.values())} bytes; the streams drain")
        ended = session.hdfs.now()
        self._await(lambda: all(drained(_observe(session, history), ended) for history in self._histories), "drain")
        for history in self._histories:
            set_desired(_run_of(session, history), DesiredState.STOPPED, "the demonstration is over")
        self._await(lambda: all(_ended(_observe(session, history)) for history in self._histories), "stop by Airflow")
        self._observe_all(session)
        self.console.say("Airflow stopped all streams, its tasks wait for a start; reading the tables through Spark")
        for history in self._histories:
            findings = _audit(environment, history.spec, ends)
            self.promises.append(promises.table_is_exact(history.spec.name, findings))

    def _await(self, condition: Any, what: str, seconds: float = 180) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise MiniclusterError(f"the streams did not {what} within {seconds:.0f} s")
            time.sleep(_LOOK_EVERY)

    def _stay(self, environment: Environment) -> None:
        self.console.say(
            f"Airflow stays up at {environment.home.url} (admin, {environment.home.login.password}); Ctrl-C ends all"
        )
        while True:
            time.sleep(3600)


def _run_of(session: ClusterSession, history: History) -> StreamRun:
    return StreamRun(session, history.spec, engine_of(history.spec))


def _ended(observation: Observation) -> bool:
    return not any(app.alive for _, app in observation.applications)


def _observe(session: ClusterSession, history: History) -> Observation:
    return observe(_run_of(session, history))


def _settled(history: History, now: datetime) -> bool:
    """Return True if the newest generation works and its restart is not near."""
    newest = history.newest
    if newest is None or newest.first_commit is None or newest.died is not None:
        return False
    return newest.plan is None or newest.plan - now > _DRAIN


def drained(observation: Observation, ended: datetime) -> bool:
    """Return True if everything is committed and nothing new was planned for several triggers.

    Between two generations a checkpoint is quiet, too: the newest one must have committed. Checkpoints that come by the
    clock never stop: one that is completed that long after the end of the input contains all of it.
    """
    moved = observation.last_move
    if moved is None or not verified(observation):
        return False
    by_clock = any(point.clock for point in observation.checkpoints)
    quiet = moved - ended if by_clock else observation.now - moved
    return quiet > _DRAIN and all(point.quiescent for point in observation.checkpoints)


def _needs_no_restart(spec: StreamSpec) -> bool:
    return spec.credentials.renews_itself or spec.credentials.refresh


def _audit(environment: Environment, spec: StreamSpec, ends: Mapping[str, int]) -> dict[str, Any]:
    """Run `jobs/verify_events.py` by spark-submit on this machine and return its findings."""
    minicluster = environment.minicluster
    ends_file = environment.root / "ends.json"
    ends_file.write_text(json.dumps(dict(ends)))
    files = [word for key, path in minicluster.event_logs().items() for word in ("--file", f"{key}={path}")]
    script = str(Path(jobs.__file__).with_name("verify_events.py"))
    kind = "--lines" if spec.engine is EngineName.FLINK else "--table"
    argv = ["spark-submit", "--master", "local[2]", script, kind, minicluster.default_fs + table(spec.name), *files]
    done = subprocess.run(
        [*argv, "--ends", str(ends_file)],
        env=minicluster.client_env(STREAMER),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        findings: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError as error:
        raise MiniclusterError(done.stderr[-2000:], tried=f"read the table of {spec.name} through Spark") from error
    return findings
