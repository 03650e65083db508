"""The interface for engines: what the supervisor needs from the program that runs a stream on YARN.

Everything else is the same for every engine: claims and fences in the stream's folder, tags, the next step, the
horizon, kills. CONTRIBUTING.md ("A new engine") says what to bring beside this protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.logs.container_log import DumpRound, Process, Stillness
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound, UncountedToken, WorkerTokens
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.progress import CommittedBatch
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


@dataclass(frozen=True)
class StopResult:
    """An application that has ended, and the means that ended it, in words for people."""

    application: Application
    means: str


@dataclass(frozen=True)
class EngineWords:
    """The engine's own words in sentences for people, and in names of files.

    `leader` is the process in YARN's first container, which leads the others. `logs` are the files of its log: first
    the job's own output, last what the engine itself writes. `refreshed` are the jobs that take fresh tokens. `worker`
    is another process of the job, one that works; `worker_logs` are the files of its log, where they differ.
    """

    leader: str
    logs: tuple[str, ...]
    refreshed: str
    worker: str
    worker_logs: tuple[str, ...] = ()

    @property
    def processes(self) -> str:
        return f"{self.leader} and {self.worker}s"


@dataclass(frozen=True)
class Newest:
    """The newest generation: its claim, None before the first, and its application, None if YARN lists none."""

    claim: Claim | None = None
    application: Application | None = None


@dataclass(frozen=True)
class Adopted:
    """A running application that somebody else submitted, as its engine knows it: the id of its `job`, if it has one,
    and the `settings` that the engine will need while nobody can ask the application.

    For the person who adopts it, in sentences: `shown` is what it writes, nothing where no engine can tell, and
    `doubts` are what it lacks.
    """

    job: str | None = None
    shown: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def require_of_type(app: Application, wanted: str, spec: StreamSpec) -> None:
    """Raises Conflict: when YARN knows the application by another type than this engine's."""
    if app.type not in {"", wanted}:
        why = (
            f"YARN says that it is of type {app.type}, and {spec.name} declares engine {spec.engine}, of type {wanted}"
        )
        raise Conflict(why, tried=f"adopt {app.id} as {spec.name}")


class Examiner(Protocol):
    """The look into one running application, whose threads are dumped a few times. It changes nothing."""

    def dump(self) -> DumpRound:
        """Dump the process that leads and those that work. It takes ten seconds at most.

        Raises Denied, NotFound, Unavailable: when the application shows nothing.
        """

    def stillness(self) -> Stillness:
        """Tell what stood still in all rounds so far; nothing in fewer than two."""


class Engine(Protocol):
    """The methods of an engine. Only `submit` needs the client on this host; with an obstacle it is never called.

    Several supervisors can call them for the same stream at once, and one can continue where another died, so
    repeating any of them must be harmless.

    Example::

        def restart(engine: Engine, session: ClusterSession, order: SubmissionOrder, step: Stop, folder: Path) -> None:
            cluster, spec = session.cluster, order.spec
            engine.preflight(cluster, spec)
            if engine.stop_gracefully(session, spec, step, may_go_on=lambda: True):
                submission = engine.submission(order)
                engine.submit(submission, cluster, folder / "tickets", folder, spec.submit.timeout)
    """

    @property
    def words(self) -> EngineWords:
        """Return the engine's own words."""

    def submission(self, order: SubmissionOrder) -> Submission:
        """Build the client's command line, each word with its reason. May ask the client what it is.

        The application must carry the tags of `order.stream` and must not start without its fence, so the command
        line passes both on. If this host has no client, or none that can run it, the submission's `obstacle` says so.

        Raises InvalidInput: when the spec sets what the protocol owns.
        """

    def draft(self, order: SubmissionOrder) -> Submission:
        """Build the same for people to read, and start nothing: what only the client could tell is a note in it."""

    def turn(self, within: timedelta) -> AbstractContextManager[None]:
        """Wait for a place among the clients that run on this host, and hold it; before a claim, which would not wait.

        Raises Unavailable: when there is none in time.
        """

    def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
        """Check this host: the client's configuration, and the local files that the spec names.

        Raises InvalidInput: when this host can't submit the next generation.
        """

    def needs(self, cluster: Cluster, spec: StreamSpec) -> Needs:
        """Tell what the next generation needs of the cluster: its queue, its containers and the files in HDFS."""

    def close_former(self, session: ClusterSession, observation: Observation) -> None:
        """Keep the newest generation, which is dead, from writing another state after the one that `resume` returns.

        Raises Denied: when that is not ours to close, and no person said where to begin.
        """

    def resume(self, session: ClusterSession, spec: StreamSpec, observation: Observation) -> ResumePoint | None:
        """Return with which state the next generation begins; None if its job finds that itself.

        It only reads. Before a claim `close_former` was called. A person's word on the next generation's start wins.

        Raises Conflict: with the way out, when the state that was reached is gone, or nobody said where a first
        generation starts. Raises InvalidInput: when the person's word makes no sense for this engine.
        """

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        """Run the client once, without retrying. It may write to `folder`, which is private.

        `ticket_cache` holds a ticket unless the job has a keytab, with which the client logs in itself. The outcome
        proves nothing: only YARN knows whether there is an application. A client that takes longer than `timeout` is
        ended, with all that it started.

        Raises an error of ours only if the client never started, so that nothing was submitted.
        """

    def adopted(self, session: ClusterSession, spec: StreamSpec, app: Application) -> Adopted:
        """Look at a running application that a person adopts as this stream. Changes nothing.

        Raises Conflict: when it is not of this engine, or writes other checkpoints than the declared ones. Raises the
        errors of its pages, where those alone tell.
        """

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        """Read how far each of the spec's checkpoints has come, in the order of the spec, for the newest generation."""

    def committed(self, session: ClusterSession, point: Checkpoint) -> CommittedBatch | None:
        """Read up to where the newest committed batch of a query has read its sources; None if none is committed.

        Raises NotFound, InvalidInput: when what the checkpoint keeps of that batch is gone, or makes no sense.
        """

    def limited(self, spec: StreamSpec, *, beside_kafka: bool = False) -> str:
        """Return why a later batch of the stream may lack what had arrived before it was planned, with the way out;
        empty if nothing declares that. `beside_kafka` asks for its sources beside Kafka alone."""

    def stop_gracefully(
        self, session: ClusterSession, spec: StreamSpec, step: Stop, may_go_on: Callable[[], bool]
    ) -> StopResult | None:
        """End the application at a point where no work is lost, and wait for that as long as the spec allows.

        The generation's stop marker already exists. `may_go_on` is asked before each further means. Returns None when
        it says no, or when the application survives all attempts: the caller then kills it, if it may.
        """

    def orphans_live(self, cluster: Cluster, spec: StreamSpec) -> timedelta:
        """Return for how long an application's other processes may go on once the leading one is gone."""

    def leftovers(self, app: Application, cluster: Cluster, spec: StreamSpec) -> Iterable[str]:
        """Name the HDFS folders that an ended application may leave behind and that must be deleted."""

    def given_up_before(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> datetime | None:
        """Return the moment before which an open file below its outputs had to stop growing for the newest generation,
        which runs, to have given it up; None if that can't be told of any. May raise an error of ours.
        """

    def remove_superseded(self, session: ClusterSession, spec: StreamSpec, claims: Sequence[Claim]) -> Iterator[str]:
        """Delete what dead generations left that none goes back to any longer, and yield the deleted folders.

        `claims` are the newest ones, in descending order. Raises Denied: at the end, when some are another user's.
        """

    def renewal_ratio(self, cluster: Cluster, spec: StreamSpec) -> float:
        """Return the share of a token's renew interval after which a job with a keytab gets its next token."""

    def tokens_are_renewed(self, cluster: Cluster, spec: StreamSpec) -> bool:
        """Return whether the ResourceManager renews the tokens with which the client submits the job."""

    def worker_tokens(self, session: ClusterSession, newest: Newest, names: Collection[str]) -> WorkerTokens | None:
        """Return with which tokens new workers of the newest generation start; None if they get the leader's newest.

        `names` are the files in the stream's folder that count. A file of a keeper's that can't be read confirms
        nothing.
        """

    def token_rounds(self, log: str) -> tuple[TokenRound, ...]:
        """Return the rounds of new tokens that the leader's log tells, oldest first."""

    def token_filesystems(self, cluster: Cluster, spec: StreamSpec) -> tuple[str, ...]:
        """Return the filesystems whose tokens the client gets at the submission, the cluster's own first."""

    def uncounted_tokens(
        self, cluster: Cluster, spec: StreamSpec, tokens: tuple[LaunchToken, ...] = ()
    ) -> tuple[UncountedToken, ...]:
        """Return the services whose tokens may end before the horizon, as far as the spec or its launch name them."""

    def processes(self, session: ClusterSession, app: Application) -> tuple[Process, ...]:
        """Return the processes of a running application with their containers; nothing if it doesn't tell them."""

    def examiner(self, session: ClusterSession, app: Application, query: str) -> Examiner:
        """Return a look into a running application. With the id of a `query`, it looks at that query's work alone."""

    def last_error(self, logs: Mapping[str, str]) -> str:
        """Return the error that the leader's log ends with, and the cause below it; empty if it names none.

        `logs` are the ends of the files that `words` names, but those that are missing.
        """
