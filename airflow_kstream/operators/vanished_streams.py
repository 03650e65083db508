"""Keep the streams whose declarations have vanished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics
from airflow_kstream.hooks.cluster import KstreamClusterHook, read_connection, spark_defaults_of
from airflow_kstream.hooks.secrets import AirflowSecrets
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.plan import Phase, Settled
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.policy.streams.identity import identity_of
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.desired import declared_at_last
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.watch import Verdict, Watch

if TYPE_CHECKING:
    from airflow.sdk import Context

_KNOWN = "known"


class VanishedStreamsOperator(BaseOperator):
    """Look after streams that this folder declared once and declares no longer, until a person has stopped them.

    Airflow takes the DAG of a file that is gone for stale and looks at its runs no longer, so the task that watched the
    stream never resumes. This one looks once a run: it restarts such a stream at its horizon, as it was last submitted,
    and its log says with an error that the stream runs undeclared. It fails when a restart fails, and when a stream has
    ended and a person may be needed; it starts a stream that ended by itself again as the `failure` policy says.

    It knows the streams of its earlier runs from their XCom `known`. Streams that were never declared here are another
    DAG's or a person's, and are left alone.

    :param declared: the names of the streams that have a file now, refused or not.
    :param cluster_conn_id: the `kstream` connection.
    :param conn_id: the `spark` connection, as of SparkStreamOperator.
    """

    def __init__(
        self, *, declared: Sequence[str], cluster_conn_id: str, conn_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.declared = sorted(declared)
        self.cluster_conn_id = cluster_conn_id
        self.conn_id = conn_id

    def execute(self, context: Context) -> list[str]:
        """Look after the vanished streams, and return those that still run."""
        ti = context["ti"]
        before = ti.xcom_pull(task_ids=self.task_id, key=_KNOWN, include_prior_dates=True) or []
        vanished = sorted(set(before) - set(self.declared))
        # At once: a look that fails forgets nobody.
        ti.xcom_push(_KNOWN, sorted({*before, *self.declared}))
        running, troubles = self._look_after(vanished) if vanished else ([], [])
        metrics.cluster_gauge("undeclared_streams", float(len(running)), self.cluster_conn_id)
        ti.xcom_push(_KNOWN, sorted({*running, *self.declared}))
        if troubles:
            raise AirflowFailException("; ".join(troubles))
        return running

    def _look_after(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        running, troubles = [], []
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            for name, verdict in Watch(session, engine_of).round(names).items():
                phase = verdict.step.phase if isinstance(verdict.step, Settled) else None
                if phase is Phase.ENDED:
                    troubles.append(f"{name} is declared no longer, and {verdict.why}")
                elif phase is not Phase.STOPPED:
                    running.append(name)
                    self._say(name, verdict)
                    if verdict.calls_for_action and (why := self._act(cluster, session, name)):
                        troubles.append(why)
        return running, troubles

    def _say(self, name: str, verdict: Verdict) -> None:
        left = "" if verdict.remaining is None else f", horizon in {format_duration(verdict.remaining)}"
        left += f", {verdict.freeze}" if verdict.freeze else ""
        advice = "put its file back, or stop it with `kstream streams stop`"
        state = (
            "is between two generations" if isinstance(verdict.step, Settled) and verdict.step.until else "still runs"
        )
        self.log.error("%s is declared no longer and %s: %s%s; %s", name, state, verdict.why, left, advice)

    def _act(self, cluster: Cluster, watcher: ClusterSession, name: str) -> str:
        """Take the due step from the claim's spec; return why that failed, empty if it did not."""
        try:
            spec = declared_at_last(watcher, StreamId(name, cluster.state_dir))
            with open_session(cluster, identity_of(spec, cluster)) as session:
                run = StreamRun(session, spec, engine_of(spec, self._spark), AirflowSecrets())
                report = Reconciler(run, tell=self.log.info, patient=False).run(Mode.WATCH)
        except KstreamError as error:
            return f"{name} is declared no longer, and what is due can't be done: {error}"
        self.log.info("%s generation %s: %s", name, report.generation, report.why)
        return f"{name} is declared no longer, and {report.why}" if report.ended else ""

    def _spark(self) -> SparkDefaults:
        return spark_defaults_of(read_connection(self.conn_id)) if self.conn_id else SparkDefaults()
