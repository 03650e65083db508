"""An engine of one page that is nothing like Spark: its jobs count epochs in one file and stop with a savepoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs, Size
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.container_log import DumpRound, Hanging, Process, Stillness, Thread, ThreadDump
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.contract import fence_name
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound, UncountedToken, WorkerTokens
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.progress import CommittedBatch
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import Offsets
from airflow_kstream.model.streams.submission import Argument, Origin, Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.engine import Adopted, EngineWords, Examiner, Newest, StopResult
from tests.simulated.servers import SimHdfs, SimYarn

_WHY = Origin("fake", "the protocol asks for it")
WORKER = Process("worker 1", "node7", tasks=1)
AT_REST = Thread("epoch 3", "BLOCKED", ("fake.Epoch.complete",))
HANGS = Hanging(WORKER, "epoch 3", AT_REST, "waits for another worker")


@dataclass
class FakeExaminer:
    """A look that finds the same at each round: what `hangs`, or nothing; `shows` is raised instead."""

    hangs: tuple[Hanging, ...] = ()
    counts: str = "3 epochs"
    shows: KstreamError | None = None
    rounds: int = 0

    def dump(self) -> DumpRound:
        if self.shows:
            raise self.shows
        self.rounds += 1
        return DumpRound((ThreadDump(WORKER, (AT_REST,)),), self.counts)

    def stillness(self) -> Stillness:
        return Stillness(self.hangs, self.hangs) if self.rounds > 1 else Stillness()


@dataclass
class FakeEngine:
    """An engine. `obstacle` names what its client lacks on this host; a job that `ignores_stops` has to be killed.

    `at_preflight` happens during each check of the host, and can raise; `at_turn` while a client waits for its place on
    the host, `at_submit` when it begins. Its client's next runs end as `ends` says; what ends badly submits nothing,
    unless the client `submits` before. `hangs` is what stands still in its jobs; they show nothing but `shows`, if that
    is set. They run `query`, which reads what `reads` says of Kafka, and more if it `reads_more`. With a `clock` epochs
    come by it; its new workers start with the tokens `workers`.
    """

    words = EngineWords("foreman", ("out.log", "err.log"), refreshed="fake scripts", worker="hand")

    hdfs: SimHdfs
    yarn: SimYarn
    obstacle: str = ""
    ignores_stops: bool = False
    needs_nodes: bool = False
    calls: list[str] = field(default_factory=list)
    files: tuple[str, ...] = ()
    at_preflight: Callable[[], object] = lambda: None
    at_turn: Callable[[], object] = lambda: None
    turns: int = 0
    at_submit: Callable[[], object] = lambda: None
    ends: list[SubmitOutcome | BaseException] = field(default_factory=list)
    submits: bool = False
    hangs: tuple[Hanging, ...] = ()
    shows: KstreamError | None = None
    reads: Offsets = field(default_factory=dict)
    reads_more: bool = False
    query: str = "fake"
    clock: Clockwork | None = None
    workers: WorkerTokens | None = None

    def submission(self, order: SubmissionOrder) -> Submission:
        fence = f"{order.stream.folder}/{fence_name(order.generation, order.nonce)}"
        tags = Argument(("--tags", ",".join(order.stream.tags(order.generation))), _WHY)
        return Submission("fake-run", (tags, Argument(("--fence", fence), _WHY)), obstacle=self.obstacle)

    def draft(self, order: SubmissionOrder) -> Submission:
        return self.submission(order)

    @contextmanager
    def turn(self, within: timedelta) -> Iterator[None]:
        self.at_turn()
        self.turns += 1
        try:
            yield
        finally:
            self.turns -= 1

    def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
        self.calls.append("checked the host")
        self.at_preflight()

    def needs(self, cluster: Cluster, spec: StreamSpec) -> Needs:
        return Needs(
            spec.deploy.queue or "default",
            bool(spec.deploy.queue),
            {"job": Size(1024)},
            files=self.files,
            stops_itself=not self.ignores_stops,
            nodes=self.needs_nodes,
        )

    def close_former(self, session: ClusterSession, observation: Observation) -> None:
        pass

    def resume(self, session: ClusterSession, spec: StreamSpec, observation: Observation) -> ResumePoint | None:
        return None

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        assert self.turns, "its client has waited for its place on this host, and holds it"
        self.at_submit()
        end = self.ends.pop(0) if self.ends else SubmitOutcome(0, "")
        if isinstance(end, BaseException):
            raise end
        if end.exit_code == 0 or self.submits:
            self._start(submission)
        return end

    def _start(self, submission: Submission) -> None:
        _, _, tags, _, fence = submission.argv()
        assert fence in self.hdfs.files, "the cluster localises the fence before the job starts"
        app = self.yarn.start(frozenset(tags.split(",")))
        self.hdfs.write(f"/tmp/fake/{app.id}/job.graph", "with a keytab in it")
        self.calls.append(f"submitted {app.id}")

    def adopted(self, session: ClusterSession, spec: StreamSpec, app: Application) -> Adopted:
        return Adopted(f"graph-of-{app.id}")

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        return tuple(self._point(path) for path in spec.checkpoints)

    def committed(self, session: ClusterSession, point: Checkpoint) -> CommittedBatch | None:
        """Return its newest epoch, which has read what `reads` says."""
        number, epochs = point.newest_committed, self._epochs(point.path)
        if number is None:
            return None
        return CommittedBatch(
            number, datetime.fromisoformat(epochs[number]), self.reads, self.reads_more or not self.reads
        )

    def limited(self, spec: StreamSpec, *, beside_kafka: bool = False) -> str:
        return "its epochs are limited" if "limited" in spec.arguments else ""

    def stop_gracefully(
        self, session: ClusterSession, spec: StreamSpec, step: Stop, may_go_on: Callable[[], bool]
    ) -> StopResult | None:
        if self.ignores_stops:
            return None
        with self.hdfs.as_user(self.yarn.application(step.application).user):
            self.hdfs.write(f"{spec.checkpoints[0]}/savepoint-{step.generation}", "", overwrite=True)
        return StopResult(self.yarn.end(step.application), "it stopped with a savepoint")

    def orphans_live(self, cluster: Cluster, spec: StreamSpec) -> timedelta:
        return timedelta()

    def leftovers(self, app: Application, cluster: Cluster, spec: StreamSpec) -> Iterable[str]:
        yield f"/tmp/fake/{app.id}"

    def given_up_before(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> datetime | None:
        return None

    def remove_superseded(self, session: ClusterSession, spec: StreamSpec, claims: Sequence[Claim]) -> Iterator[str]:
        return iter(())

    def renewal_ratio(self, cluster: Cluster, spec: StreamSpec) -> float:
        return 0.5

    def worker_tokens(self, session: ClusterSession, newest: Newest, names: Collection[str]) -> WorkerTokens | None:
        return self.workers

    def token_rounds(self, log: str) -> tuple[TokenRound, ...]:
        return ()

    def tokens_are_renewed(self, cluster: Cluster, spec: StreamSpec) -> bool:
        return True

    def token_filesystems(self, cluster: Cluster, spec: StreamSpec) -> tuple[str, ...]:
        return (cluster.default_fs,)

    def uncounted_tokens(
        self, cluster: Cluster, spec: StreamSpec, tokens: tuple[LaunchToken, ...] = ()
    ) -> tuple[UncountedToken, ...]:
        return tuple(UncountedToken(name, "some day") for key, name in spec.plain_conf.items() if key == "fake.service")

    def processes(self, session: ClusterSession, app: Application) -> tuple[Process, ...]:
        return (WORKER,)

    def examiner(self, session: ClusterSession, app: Application, query: str) -> Examiner:
        return FakeExaminer(self.hangs, shows=self.shows)

    def last_error(self, logs: Mapping[str, str]) -> str:
        return next((line for line in logs.get("err.log", "").splitlines() if "broke" in line), "")

    def complete_epoch(self, spec: StreamSpec) -> None:
        """Complete an epoch, as a running job does by itself."""
        for path in spec.checkpoints:
            epochs = [*self._epochs(path), self.hdfs.now().isoformat()]
            self.hdfs.write(f"{path}/epochs.json", json.dumps(epochs), overwrite=True)

    def _epochs(self, path: str) -> list[str]:
        name = f"{path}/epochs.json"
        return list(json.loads(self.hdfs.read(name))) if name in self.hdfs.files else []

    def _point(self, path: str) -> Checkpoint:
        done = {number: datetime.fromisoformat(at) for number, at in enumerate(self._epochs(path))}
        owner = frozenset({self.hdfs.status(f"{path}/epochs.json").owner}) if done else frozenset()
        return Checkpoint(path, self.query if done else None, done, done, writers=owner, clock=self.clock)
