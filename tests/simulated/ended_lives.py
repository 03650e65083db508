"""Whole lives of streams whose jobs end without a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs
from airflow_kstream.model.secrets import SecretRef, Value
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.plan import Phase, Report, Settled
from airflow_kstream.model.streams.stream import OnChange, StreamSpec
from airflow_kstream.model.streams.stream_policies import StopPolicy, WatchPolicy
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.memory import past_ends
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC, Life

FAILED, KILLED = ApplicationState.FAILED, ApplicationState.KILLED
# A driver that left no error.
BARE = "User application exited with status 1"
CODE = "User class threw exception: java.lang.IllegalStateException: x"
# Few looks and a short proof of death: these tests live through hours.
BRISK = replace(
    SPEC, watch=WatchPolicy(look_every=timedelta(seconds=10)), stop=StopPolicy(silence=timedelta(seconds=1))
)


def end(life: Life, diagnostics: str = CODE, state: ApplicationState = FAILED, lived: float = 60) -> None:
    """End the newest application after it lived so many seconds."""
    life.clock.ahead += timedelta(seconds=lived)
    life.yarn.end(list(life.yarn.apps)[-1], state, diagnostics)


def recorded(life: Life) -> tuple[PastEnd, ...]:
    return past_ends(life.run.folder, life.run.folder.names())


def keep(life: Life, ends: int, diagnostics: str = CODE) -> list[Phase]:
    """Live as the operator's task does, with a job that dies a minute after each start; return how its runs ended."""
    life.run, phases, mode = replace(life.run, spec=BRISK), [], Mode.ENSURE
    while len(life.yarn.apps) <= ends:
        report = life.reconcile(mode)
        phases.append(report.phase)
        mode = Mode.ENSURE if report.ended else Mode.WATCH
        if report.phase is Phase.RUNNING:
            end(life, diagnostics)
        if isinstance(step := life.watch().step, Settled) and step.until:
            life.clock.ahead += max(step.until - life.clock.now(), timedelta())
    return phases


BLUE = replace(SPEC, on_change=OnChange.RESTART, stop=StopPolicy(silence=timedelta(seconds=1)))
GREEN = replace(BLUE, arguments=("--faster",))


@dataclass
class NotingEngine(FakeEngine):
    """The fake engine, which keeps the spec that each generation was submitted with.

    A spec without arguments needs `former_files` on HDFS.
    """

    submitted: dict[int, StreamSpec] = field(default_factory=dict)
    former_files: tuple[str, ...] = ()

    def needs(self, cluster: Cluster, spec: StreamSpec) -> Needs:
        return replace(super().needs(cluster, spec), files=() if spec.arguments else self.former_files)

    def submission(self, order: SubmissionOrder) -> Submission:
        if order.generation:
            self.submitted[order.generation] = order.spec
        secret = {key: value for key, value in order.spec.conf.items() if isinstance(value, SecretRef)}
        conf: Mapping[str, Value] = secret
        return replace(super().submission(order), secret_conf=conf)


class Changing:
    """A stream whose declaration changes."""

    def __init__(self, life: Life) -> None:
        self.life, self.lines = life, []  # type: ignore[var-annotated]
        self.engine = NotingEngine(life.hdfs, life.yarn)
        life.use(life.hdfs, self.engine)
        self.declared = BLUE

    def reconcile(self, mode: Mode = Mode.WATCH) -> Report:
        run = replace(self.life.run, spec=self.declared)
        return Reconciler(run, tell=self.lines.append).run(mode)

    def commit(self) -> None:
        self.life.clock.ahead += timedelta(seconds=20)
        self.engine.complete_epoch(self.declared)

    def end(self, diagnostics: str = CODE, state: ApplicationState = ApplicationState.FAILED) -> None:
        self.life.clock.ahead += timedelta(minutes=1)
        self.life.yarn.end(list(self.life.yarn.apps)[-1], state, diagnostics)

    def follow(self) -> Report:
        """Reconcile as the task, its retries and its trigger do, until a generation runs."""
        for _ in range(1000):
            report = self.reconcile()
            if report.phase is Phase.RUNNING:
                return report
            self.life.clock.ahead += timedelta(minutes=1)
        raise AssertionError(report)

    @property
    def arguments(self) -> list[tuple[str, ...]]:
        """Return what each generation was submitted with, in their order."""
        return [self.engine.submitted[number].arguments for number in sorted(self.engine.submitted)]

    @property
    def claim(self) -> Claim:
        claim = self.life.run.folder.claim(self.life.run.folder.names())
        assert claim
        return claim

    @property
    def ends(self) -> tuple[PastEnd, ...]:
        return Reconciler(self.life.run).plan()[0].folder.ends
