"""The programs of a history: keepers, which live as the operator's task and its trigger do, and persons' commands."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, NotFound, RestartAborted, Unavailable
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import REQUESTED, request_restart, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulation.checks import DEFECT, Word
from tests.simulation.virtual import Program, current
from tests.simulation.world import World, client_of

# In seconds: the pauses of SparkStreamOperator, of its retries, and of the schedule of a stream's DAG.
_SETTLING, _PAUSE, RETRY, NEXT_RUN = 10.0, 60.0, 60.0, 300.0
# A host of ours that died is back, with a new process, after this.
_REBOOT = 45.0


@dataclass
class Keeper:
    """The task that keeps a stream: it reconciles, defers to a trigger, wakes; after a crash another one begins."""

    world: World
    name: str
    cluster: Cluster
    lives: int = 0
    _told: str = field(default="", init=False)

    def start(self, delay: float) -> None:
        self.lives += 1
        name = self.name if self.lives == 1 else f"{self.name}.{self.lives}"
        program = Program(self.world.scheduler, name, self._main, self.world.plan.seed, self.world.plan.host_skew)
        self.world.programs[name] = program.start(delay)
        self.world.scheduler.after(delay + _REBOOT, lambda: self._look_after(program))

    @property
    def spec(self) -> StreamSpec:
        return self.world.spec()

    def _look_after(self, program: Program) -> None:
        """Begin again after a crash; an error that the product doesn't know is a defect of it."""
        if not program.over:
            self.world.scheduler.after(_REBOOT, lambda: self._look_after(program))
            return
        if program.error is not None:
            raise program.error
        self.world.checks.tell(program.name, "is followed by a new process")
        self.start(0.0)

    def _main(self) -> None:
        with ExitStack() as opened:
            triggerer: Watch | None = None
            mode, reached = Mode.ENSURE, NOWHERE
            while True:
                watch_after, run_after = self._task(mode, reached)
                if watch_after is None:
                    mode = Mode.ENSURE
                    time.sleep(run_after)
                    continue
                if triggerer is None:
                    session = opened.enter_context(open_session(self.cluster, self.cluster.watcher))
                    triggerer = Watch(session, self._engine_of, again=True)
                time.sleep(max(watch_after, _SETTLING))
                reached = self._watch(triggerer)
                mode = Mode.WATCH

    def _task(self, mode: Mode, reached: ReachedPositions) -> tuple[float | None, float]:
        """Run the task once. Return the pause before watching, None if it ended; and that before the next run."""
        try:
            with open_session(self.cluster, identity_of(self.spec, self.cluster)) as session:
                run = StreamRun(session, self.spec, self._engine_of(self.spec))
                report = Reconciler(run, tell=self._tell).run(mode, reached)
        except RestartAborted as error:
            self._tell(str(error))
            return _PAUSE, 0.0
        except KstreamError as error:
            self._tell(f"its task fails: {error}")
            return None, RETRY
        except Exception as error:
            self.world.checks.broken(DEFECT, "".join(traceback.format_exception(error)))
            raise
        if not report.ended:
            return _PAUSE if mode is Mode.WATCH and not report.done else 0.0, 0.0
        failed = report.phase is Phase.ENDED and not report.job.succeeded
        return None, RETRY if failed else NEXT_RUN

    def _watch(self, triggerer: Watch) -> ReachedPositions:
        """Look at the stream as a trigger does, until the verdict calls for action; return what it saw it reach."""
        while True:
            verdict: Verdict = triggerer.round([self.spec.name])[self.spec.name]
            if verdict.calls_for_action:
                self._tell(f"its trigger fires: {verdict.why}")
                return verdict.progress.reached
            time.sleep(self.spec.watch.every.total_seconds())

    def _engine_of(self, spec: StreamSpec) -> Engine:
        return engine_of(spec, SparkDefaults, str(client_of(Path(self.cluster.hadoop_conf_dir or ""))))

    def _tell(self, line: str) -> None:
        if line != self._told:
            self._told = line
            program = current()
            self.world.checks.tell(program.name if program else self.name, line)


@dataclass
class Person:
    """A person with one command, who repeats it until it is carried out or refused."""

    world: World
    name: str
    cluster: Cluster
    said: DesiredState | None

    def start(self) -> None:
        program = Program(self.world.scheduler, self.name, self._main, self.world.plan.seed, self.world.plan.host_skew)
        self.world.programs[self.name] = program.start()

    def _main(self) -> None:
        spec = self.world.spec()
        folder = StreamId(spec.name, self.cluster.state_dir).folder
        up_to = self.world.checks.newest(folder) if self.said is None else 0
        word = Word(folder, self.said, self.world.now, up_to)
        self.world.checks.words.append(word)
        self.world.checks.tell(self.name, f"says {self.said or 'restart'}")
        while True:
            try:
                with open_session(self.cluster, self.cluster.watcher) as session:
                    self._say(StreamRun(session, spec, engine_of(spec)))
            except Unavailable:
                time.sleep(10.0)
            except KstreamError as error:
                self.world.checks.tell(self.name, f"hears no: {error}")
                if REQUESTED not in error.message:
                    self.world.checks.words.remove(word)
                word.ended = self.world.now
                return
            else:
                word.ended = self.world.now
                self.world.checks.tell(self.name, "hears yes")
                return

    def _say(self, run: StreamRun) -> None:
        if self.said is None:
            request_restart(run, self.name)
        else:
            set_desired(run, self.said, self.name)


@dataclass
class Adopter:
    """A person who takes a job over that runs already."""

    world: World
    name: str
    cluster: Cluster
    application: str

    def start(self) -> None:
        program = Program(self.world.scheduler, self.name, self._main, self.world.plan.seed, self.world.plan.host_skew)
        self.world.programs[self.name] = program.start()

    def _main(self) -> None:
        spec = self.world.spec()
        try:
            with open_session(self.cluster, self.cluster.watcher) as session:
                claim = adopt(StreamRun(session, spec, engine_of(spec)), self.application)
        except KstreamError as error:
            self.world.checks.tell(self.name, f"hears no: {error}")
        else:
            self.world.checks.tell(self.name, f"adopts {self.application} as generation {claim.generation}")


def read_by_a_program(world: World, cluster: Cluster, read: Callable[[ClusterSession], object]) -> object:
    """Return what `read` finds, with the product's own clients, in a world that is calm."""
    found: list[object] = []

    def main() -> None:
        with open_session(cluster, cluster.watcher) as session:
            try:
                found.append(read(session))
            except NotFound:
                found.append(None)

    reader = Program(world.scheduler, "the auditor", main, world.plan.seed).start()
    world.scheduler.run(world.now + 120, lambda: reader.over)
    if reader.error is not None:
        raise reader.error
    return found[0] if found else None
