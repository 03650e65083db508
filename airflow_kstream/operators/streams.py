"""Make sure that a stream runs, and watch it without holding a worker slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from airflow.sdk import XComArg
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.connection import AirflowSecrets, read_connection, spark_defaults_of
from airflow_kstream.links import PageLink, YarnApplicationLink, YarnLogsLink
from airflow_kstream.model.errors import (
    Conflict,
    KstreamError,
    RestartAborted,
    StreamEnded,
    Unavailable,
)
from airflow_kstream.model.streams.generation import Life
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream import EngineName, StreamSpec
from airflow_kstream.model.streams.submission import ExplainedSubmission, SparkDefaults
from airflow_kstream.operators.declared_stream import DeclaredStreamOperator
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.restart.blocked import BlockedRestart, blocked_again
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.states.tasks import recalled, record
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.doctor.examination import foretell
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.other_streams import lives_of
from airflow_kstream.supervise.streams.look.watch import Subject, Watch
from airflow_kstream.supervise.streams.restart.dry_run import blocked_start, explained, planned
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers.memory import Memory, SuccessorDoubt
from airflow_kstream.triggers.streams import StreamTrigger
from airflow_kstream.views.streams import errors_of, warnings_of

if TYPE_CHECKING:
    from airflow.sdk import Context


# Seconds before the trigger's first look, where this task could not conclude anything, or had nothing to do.
UNREACHED_PAUSE = 60.0
_TESTED = "This was a test: it ends after the first look, and nobody watches the stream until its DAG runs in Airflow"


class _StreamOperator(DeclaredStreamOperator):
    """The keeper of one stream, whatever runs it."""

    template_fields: Sequence[str] = ("stream", "cluster_conn_id", "submission")
    template_fields_renderers = {"stream": "yaml", "submission": "bash"}  # noqa: RUF012  Airflow's own attribute
    operator_extra_links = (PageLink(), YarnApplicationLink(), YarnLogsLink())
    # Only the run itself knows the command line.
    overwrite_rtif_after_execution = True

    def __init__(
        self,
        *,
        stream: StreamSpec | Mapping[str, Any] | XComArg | str,
        cluster_conn_id: str,
        follows_edits: bool = False,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(stream=stream, cluster_conn_id=cluster_conn_id, follows_edits=follows_edits, **kwargs)
        self.only_plan = dry_run
        self.submission: str | None = None
        self._recalled = NOWHERE

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Start the stream or adopt its running generation, then watch it."""
        if self.only_plan:
            self._say_plan()
            return None
        self._recalled = recalled(self.cluster_conn_id, self._spec().name)
        return self._reconcile(context, Mode.ENSURE, Memory())

    def _say_plan(self) -> None:
        """Log what a submission would run. Raises AirflowFailException: when something blocks it, with all of that."""
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            spec = self._spec()
            engine = self._engine(spec)
            plan = explained(cluster, spec, engine)
            self.submission = str(plan)
            self.log.info("%s", self.submission)
            with open_session(cluster, identity_of(spec, cluster)) as session:
                why = blocked_start(plan, StreamRun(session, spec, engine, AirflowSecrets()), self.log.warning)
        if why:
            raise AirflowFailException(f"blocked: {'; '.join(why)}")

    def resume(self, context: Context, event: dict[str, Any], mode: str = Mode.WATCH) -> dict[str, Any] | None:
        """Act on what the trigger saw, then watch again or end."""
        self.log.info("%s: %s", event["stream"], event["why"])
        wanted = Mode.ENSURE if event.get("ensure") else Mode(mode)
        self._recalled = ReachedPositions.from_json(event.get("recalled"))
        return self._reconcile(context, wanted, Memory.from_json(event.get("memory")))

    def _reconcile(self, context: Context, mode: Mode, memory: Memory) -> dict[str, Any] | None:
        """Act; whatever fails, a stream that runs stays watched."""
        if self.refusal:
            kept = f"The declaration is refused; {self._spec().name} is kept as it was last submitted"
            self.log.error("%s. %s", kept, self.refusal)
        # The watcher judged by it, and would wake this task again and again if they disagreed.
        self._edit = memory.declaration.edit
        # A stall is acted upon once: its watcher decides whether it is time for another examination.
        stall, memory = memory.stalls.stall, replace(memory, stalls=replace(memory.stalls, stall=None))
        try:
            return self._act(context, mode, memory, stall)
        except StreamEnded as error:
            if mode is Mode.ENSURE or self.is_followed(context):
                raise
            self.log.error("%s. Nothing would follow this try, so it watches on", error)
            return self._reconcile(context, Mode.ENSURE, memory)
        except Unavailable as error:
            # The trigger waits for the servers, or wakes this task again; a worker slot is not for that.
            self.log.warning("%s", error)
            known = memory.failed(error.message, datetime.now(UTC))
            self._watch(self._spec(), mode, known, pause=UNREACHED_PAUSE)
        except KstreamError as error:
            if not self._runs(memory):
                raise
            self._watch_blocked(self._spec(), mode, memory, error, pause=UNREACHED_PAUSE)

    def _act(self, context: Context, mode: Mode, memory: Memory, stall: Stall | None) -> dict[str, Any] | None:
        with self._reconciler() as (reconciler, following):
            try:
                # What a row says is never part of what is known: it only adds to it, for this once.
                report = reconciler.run(mode, memory.recalls(self._recalled).reached, stall, memory.safe_mode)
            except RestartAborted as error:
                known = replace(memory, foretold=self._foretold(reconciler))
                self._watch_blocked(reconciler.spec, mode, known, error)
            if memory.blocked:
                self.log.info("%s: its restart is not blocked any longer", report.stream)
            # Not before: servers that are silent must not delay what is due.
            report = replace(report, foretold=self._foretold(reconciler))
            every = reconciler.spec.watch.every
            lives = lives_of(reconciler.session, reconciler.stream)
            self._publish(context, report, lives, following(report.generation + 1), every)
            return self._conclude(reconciler.spec, report, mode, memory)

    def _foretold(self, reconciler: Reconciler) -> tuple[str, ...]:
        """Return what the doctor expects for the generation that runs, none if none does."""
        name = reconciler.spec.name
        return foretell(reconciler.session, name).get(name, ())

    def _runs(self, memory: Memory) -> bool:
        """Return whether the stream runs, by a look with the connection's rights; if it shows nothing, as last seen."""
        spec, as_last_seen = self._spec(), memory.plan is not None
        with (
            suppress(KstreamError),
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            for _, verdict in Watch(session).looks([Subject(spec.name, self._policies(spec))]):
                return as_last_seen if verdict.step is None else verdict.lives
        return as_last_seen

    def _watch_blocked(
        self, spec: StreamSpec, mode: Mode, memory: Memory, error: KstreamError, pause: float = 0.0
    ) -> NoReturn:
        """Watch a stream that goes on although its task can't do what is due; the next try has its time."""
        blocked = blocked_again(memory.blocked, datetime.now(UTC), memory.word)
        self._tell_blocked(spec.name, blocked, error)
        doubt = str(error) if isinstance(error.__cause__, Conflict) else ""
        self._watch(spec, mode, replace(memory, blocked=blocked, successor=SuccessorDoubt(doubt)), pause)

    def _tell_blocked(self, stream: str, blocked: BlockedRestart, error: KstreamError) -> None:
        """Tell the begin of the event as an error, and each further try that fails as a warning."""
        if blocked.tries == 1:
            self.log.error("%s: its restart is blocked: %s", stream, error)
        else:
            since = f"since {blocked.since:%Y-%m-%d %H:%M:%S %Z}, try {blocked.tries}"
            self.log.warning("%s: its restart is still blocked, %s: %s", stream, since, error)

    def _conclude(self, spec: StreamSpec, report: Report, mode: Mode, memory: Memory) -> dict[str, Any] | None:
        if not report.ended:
            # Woken without need: the watcher and this task disagree, or it can't see. The pause prevents a busy loop.
            if self.is_a_test():
                self.log.warning("%s: %s. %s", report.stream, report.why, _TESTED)
                return report.to_json()
            pause = UNREACHED_PAUSE if mode is Mode.WATCH and not report.done else 0.0
            self._watch(spec, Mode.WATCH, memory.after(report), pause)
        if not report.job.succeeded:
            tried = f"watch generation {report.generation} of {report.stream} ({report.job.application})"
            raise StreamEnded(f"{report.why}. {report.job.diagnostics}", tried=tried)
        return report.to_json()

    def _watch(self, spec: StreamSpec, mode: Mode, memory: Memory, pause: float = 0.0) -> NoReturn:
        """Defer, with no limit of time: a stream runs for months."""
        if self.is_a_test():
            raise AirflowFailException(f"{spec.name}: the first look settled nothing, as logged above. {_TESTED}")
        trigger = StreamTrigger(
            self.cluster_conn_id,
            spec.name,
            spec.watch.every.total_seconds(),
            pause,
            spec.watch.blind_after.total_seconds(),
            policies=self._policies(spec),
            memory=replace(memory, declaration=replace(memory.declaration, declared=datetime.now(UTC))).to_json(),
            follows_edits=self.follows_edits,
        )
        self.defer(trigger=trigger, method_name="resume", kwargs={"mode": mode.value})

    def _publish(
        self, context: Context, report: Report, lives: Sequence[Life], following: ExplainedSubmission, every: timedelta
    ) -> None:
        """Push the report and the links' addresses as XComs, and count each restart."""
        ti = context["ti"]
        ti.xcom_push("report", report.to_json())
        record(self.cluster_conn_id, report, ti, lives, following, every)
        ti.xcom_push("yarn_application", report.job.application_url)
        ti.xcom_push("yarn_logs", report.job.logs_url)
        restarts = sum((done.submitted or 1) > 1 for done in report.done)
        metrics.count("restarts", restarts, self.cluster_conn_id, report.stream)
        for sentence in errors_of(report):
            self.log.error("%s: %s", report.stream, sentence)
        for sentence in warnings_of(report):
            self.log.warning("%s: %s", report.stream, sentence)

    @contextmanager
    def _reconciler(self) -> Iterator[tuple[Reconciler, Callable[[int], ExplainedSubmission]]]:
        """Yield it, and what makes the plan of the submission that a generation would begin with."""
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            known = self._known_on(cluster)
            engine = self._engine(known.spec)
            following = partial(planned, cluster, known, engine)
            self.submission = str(following())
            with open_session(cluster, known.identity(cluster)) as session:
                run = StreamRun(session, known.spec, engine, AirflowSecrets(), declared=known.submittable)
                yield Reconciler(run, tell=self.log.info, patient=False), following

    def _engine(self, spec: StreamSpec) -> Engine:
        return engine_of(spec)


class SparkStreamOperator(_StreamOperator):
    """Keep one stream running: adopt its running generation or submit a new one, never both, then watch it.

    While the stream is healthy, the task is deferred and holds neither a worker slot nor a JVM. Before the stream's
    credentials end it wakes, restarts it and defers again. It stays deferred while the stream is held or stopped, and
    starts a stopped one when a person wants it again. It ends when the job ends successfully. After any other end that
    nobody planned it starts the next generation at the pace of the `failure` policy, and stays deferred until then. An
    end that may need a person (an error of the job, a kill, an open circuit breaker) first fails it once, with
    StreamEnded, which carries the reason, if this task is the first to see it while it watches; Airflow's retry then
    waits for the same moment, and `default_args` can't take it away. Where neither a retry nor another run would
    follow, the task logs the reason and watches on. A job that a person killed is not started until `kstream streams
    start NAME`.

    A mapping that is refused keeps its DAG, with a warning: its task keeps the stream as it was last submitted, as for
    a file of `[kstream] streams_folder`. Where nothing was submitted, it fails with the refusal.

    It also resumes when the triggerer could conclude nothing for `watch.blind_after`, to look with the stream's own
    rights. If it sees nothing either, or if a restart's preflight fails, it defers again and holds no worker slot.

    `airflow dags test` and `airflow tasks test` run it for real, without anybody who would watch afterwards: they end
    after the first look, which may have submitted the stream. `dry_run` submits nothing.

    What it does not do: clearing the task, or marking it success or failed, stops no stream; it only detaches.
    To stop the stream, use `kstream streams stop NAME`. An edit of a policy reaches the deferred task of a stream that
    `[kstream] streams_folder` declares; in a DAG of your own, it holds from when the task next resumes.

    Example::

        with DAG("orders", schedule="*/5 * * * *", max_active_runs=1, catchup=False):
            SparkStreamOperator(
                task_id="keep",
                cluster_conn_id="prod",
                stream={
                    "name": "orders",
                    "credentials": {"mode": "ticket"},
                    "application": "/opt/jobs/orders.py",
                    "checkpoints": ["/data/checkpoints/orders"],
                    "conf": {"spark.ssl.keyPassword": {"secret": "conn:orders"}},
                },
            )

    :param stream: the declaration, as a StreamSpec, a mapping of its fields or text in YAML (templated). It refers to
        a secret by where that is kept, such as `{secret: conn:orders}`; secrets are looked up right before submission.
        Templates in the arguments of `notify` are rendered when an event happens; in a declaration that is itself a
        template or comes from a task, write them as {% raw %}{{ event.words }}{% endraw %}.
    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param conn_id: the `spark` connection whose queue and client are used where the declaration names none, if any.
    :param follows_edits: whether `[kstream] streams_folder` declares the stream: then the policies that `undeclared-*`
        keeps of it hold while the task is deferred.
    :param dry_run: log the exact command line and the source of each word, ask the cluster whether it would start,
        touch nothing, and end; as failed, if something blocks the start.
    :raises InvalidInput: when the declaration is wrong; a StreamSpec where the DAG is parsed, others in the task. A
        secret in clear is always refused where the DAG is parsed.
    :raises StreamEnded: when the job ended unsuccessfully, and a person may be needed.
    """

    engines: ClassVar[tuple[EngineName, ...]] = (EngineName.SPARK,)

    def __init__(
        self,
        *,
        stream: StreamSpec | Mapping[str, Any] | XComArg | str,
        cluster_conn_id: str,
        conn_id: str | None = None,
        follows_edits: bool = False,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            stream=stream, cluster_conn_id=cluster_conn_id, follows_edits=follows_edits, dry_run=dry_run, **kwargs
        )
        self.conn_id = conn_id

    def _engine(self, spec: StreamSpec) -> Engine:
        return engine_of(spec, self._spark)

    def _spark(self) -> SparkDefaults:
        return spark_defaults_of(read_connection(self.conn_id)) if self.conn_id else SparkDefaults()


class FlinkStreamOperator(_StreamOperator):
    """Keep one stream of Flink's running, in one deferred task, like SparkStreamOperator.

    A person says once where its first generation begins (`kstream streams start NAME --never-submitted --fresh`, or
    `--resume PATH`), or adopts a job that runs (`kstream streams adopt`); until then the task fails and says so. Each
    later generation begins with the newest state that the one before it left.

    Example::

        with DAG("clicks", schedule="*/5 * * * *", max_active_runs=1, catchup=False):
            FlinkStreamOperator(
                task_id="keep",
                cluster_conn_id="prod",
                stream={
                    "name": "clicks",
                    "credentials": {"mode": "ticket"},
                    "application": "hdfs:///apps/clicks.jar",
                    "checkpoints": ["/flink/clicks"],
                    "conf": {"execution.checkpointing.interval": "30s"},
                },
            )

    :param stream: the declaration, as a FlinkStreamSpec, a mapping of its fields or text in YAML (templated). A mapping
        may leave out `engine`.
    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param follows_edits: as of SparkStreamOperator.
    :param dry_run: log what it would submit, touch nothing, and end; as failed, if something blocks it.
    :raises InvalidInput: when the declaration is wrong, or another engine's; a FlinkStreamSpec where the DAG is parsed,
        others in the task.
    :raises StreamEnded: when the job ended unsuccessfully, and a person may be needed.
    """

    engines = (EngineName.FLINK,)
    implied: ClassVar[Mapping[str, str]] = {"engine": EngineName.FLINK.value}


class ClaimedStreamOperator(SparkStreamOperator):
    """Keep a stream as it was last submitted, because its present declaration is refused.

    It watches the stream and restarts it at its horizon, like SparkStreamOperator, from the declaration that the newest
    claim names, as a supervisor kept it, with the policies of the last declaration that was not refused, if they were
    edited since. Each run's log begins with the refusal. It never submits what was not submitted before: the task of a
    stream without a claim fails with the refusal. Where no supervisor kept the declaration, the stream is watched and
    can be stopped, and what is due otherwise is blocked until a declaration is accepted again.

    Example::

        ClaimedStreamOperator(
            task_id="keep", name="orders", refusal="orders.yaml: it is not YAML", cluster_conn_id="prod"
        )

    :param name: the stream's name.
    :param refusal: what is wrong with the declaration.
    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param conn_id: the `spark` connection, as of SparkStreamOperator.
    """

    # A refused declaration doesn't tell what runs.
    engines = tuple(EngineName)

    def __init__(self, *, name: str, refusal: str, **kwargs: Any) -> None:
        super().__init__(stream={"name": name}, **kwargs)
        self.name = name
        self.refusal = refusal

    def _refused(self) -> str:
        # Its DAG is made of the refusal, and tells it.
        return ""
