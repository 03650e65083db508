"""Make sure that a stream runs, and watch it without holding a worker slot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseOperator, XComArg

from airflow_kstream import metrics
from airflow_kstream.hooks.cluster import KstreamClusterHook, read_connection, spark_defaults_of
from airflow_kstream.hooks.secrets import AirflowSecrets
from airflow_kstream.links.yarn import YarnApplicationLink, YarnLogsLink
from airflow_kstream.model.errors import InvalidInput, RestartAborted, StreamEnded
from airflow_kstream.model.plan import Phase, Report
from airflow_kstream.model.secrets import require_no_literals
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.policy.streams.identity import identity_of
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.dry_run import explain
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.triggers.streams import StreamTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class SparkStreamOperator(BaseOperator):
    """Keep one stream running: adopt its running generation or submit a new one, never both, then watch it.

    While the stream is healthy, the task is deferred and holds neither a worker slot nor a JVM. At the generation's
    horizon it resumes, restarts the stream and defers again. It ends when the job ends by itself (successfully, or
    with StreamEnded, which carries the reason; Airflow's retries then start the next generation) or when the desired
    state is stopped.

    What it does not do: clearing the task, or marking it success or failed, stops no stream; it only detaches.
    To stop the stream, use `kstream streams stop NAME`.

    Example::

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
    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param conn_id: the `spark` connection whose queue and client are used where the declaration names none, if any.
    :param dry_run: log the exact command line and the source of each word, touch nothing, and end.
    :raises InvalidInput: when the declaration is wrong; a StreamSpec where the DAG is parsed, others in the task.
    :raises StreamEnded: when the job ended unsuccessfully.
    """

    template_fields: Sequence[str] = ("stream", "cluster_conn_id", "submission")
    template_fields_renderers = {"stream": "yaml", "submission": "bash"}  # noqa: RUF012  Airflow's own attribute
    operator_extra_links = (YarnApplicationLink(), YarnLogsLink())
    # Only the run itself knows the command line.
    overwrite_rtif_after_execution = True

    def __init__(
        self,
        *,
        stream: StreamSpec | Mapping[str, Any] | XComArg | str,
        cluster_conn_id: str,
        conn_id: str | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream.checked().to_mapping() if isinstance(stream, StreamSpec) else stream
        # Not only on the worker: Airflow stores parsed and rendered fields in its database.
        _require_no_literals(self.stream)
        self.cluster_conn_id = cluster_conn_id
        self.conn_id = conn_id
        self.only_plan = dry_run
        self.submission: str | None = None

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Start the stream or adopt its running generation, then watch it."""
        if self.only_plan:
            with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
                spec = self._spec()
                self.submission = explain(cluster, spec, self._engine(spec))
            self.log.info("%s", self.submission)
            return None
        return self._reconcile(context, Mode.ENSURE)

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any] | None:
        """Act on what the trigger saw, then watch again or end."""
        self.log.info("%s: %s", event["stream"], event["why"])
        return self._reconcile(context, Mode.WATCH)

    def _reconcile(self, context: Context, mode: Mode) -> dict[str, Any] | None:
        with self._reconciler() as reconciler:
            try:
                report = reconciler.run(mode)
            except RestartAborted as error:
                self.log.error("%s", error)
                self._watch(pause=60.0)
            self._publish(context, report)
        return self._conclude(report, mode)

    def _conclude(self, report: Report, mode: Mode) -> dict[str, Any] | None:
        if not report.ended:
            # Woken without need: the watcher and this task disagree, or it can't see. The pause prevents a busy loop.
            self._watch(pause=60.0 if mode is Mode.WATCH and not report.done else 0.0)
        if report.phase is Phase.ENDED and not report.succeeded:
            tried = f"watch generation {report.generation} of {report.stream} ({report.application})"
            raise StreamEnded(f"{report.why}. {report.diagnostics}", tried=tried)
        return report.to_json()

    def _watch(self, pause: float = 0.0) -> NoReturn:
        spec = self._spec()
        every = spec.watch.every.total_seconds()
        self.defer(trigger=StreamTrigger(self.cluster_conn_id, spec.name, every, pause), method_name="resume")

    def _publish(self, context: Context, report: Report) -> None:
        """Push the report and the links' addresses as XComs, and count each restart."""
        ti = context["ti"]
        ti.xcom_push("report", report.to_json())
        ti.xcom_push("yarn_application", report.application_url)
        ti.xcom_push("yarn_logs", report.logs_url)
        metrics.count("restarts", sum((done.submitted or 1) > 1 for done in report.done), report.stream)
        if report.spec_doubt:
            self.log.warning("%s: %s (on_change restarts nothing)", report.stream, report.spec_doubt)
        if report.owner_doubt:
            self.log.error("%s: the owner of its checkpoint is in doubt: %s", report.stream, report.owner_doubt)
        for field in report.spec_differences:
            self.log.warning("%s: the declared %s differs from what runs (on_change: report)", report.stream, field)

    @contextmanager
    def _reconciler(self) -> Iterator[Reconciler]:
        spec = self._spec()
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            engine = self._engine(spec)
            self.submission = explain(cluster, spec, engine)
            with open_session(cluster, identity_of(spec, cluster)) as session:
                yield Reconciler(StreamRun(session, spec, engine, AirflowSecrets()), tell=self.log.info)

    def _spec(self) -> StreamSpec:
        if isinstance(self.stream, str):
            return StreamSpec.from_yaml(self.stream)
        if isinstance(self.stream, Mapping):
            return StreamSpec.from_mapping(self.stream)
        raise InvalidInput(f"stream is {type(self.stream).__name__}; allowed is a mapping of fields, or text in YAML")

    def _engine(self, spec: StreamSpec) -> Engine:
        return engine_of(spec, self._spark)

    def _spark(self) -> SparkDefaults:
        return spark_defaults_of(read_connection(self.conn_id)) if self.conn_id else SparkDefaults()


def _require_no_literals(stream: object) -> None:
    """Refuse secrets in clear, as far as they are known before rendering: text and an XCom are read at run time."""
    if not isinstance(stream, Mapping):
        return
    deploy = stream.get("deploy")
    environment = deploy.get("environment") if isinstance(deploy, Mapping) else None
    arguments = stream.get("arguments")
    require_no_literals(_mapping(stream.get("conf")), _mapping(environment), _texts(arguments))


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
