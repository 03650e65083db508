"""Keep the streams whose declarations have vanished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics
from airflow_kstream.assets import asset_uri, cluster_inlets
from airflow_kstream.hooks.cluster import KstreamClusterHook, read_connection, spark_defaults_of
from airflow_kstream.hooks.secrets import AirflowSecrets
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.event import EventKind, Trouble
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.plan import Phase, Settled, Step, Stop
from airflow_kstream.model.submission import SparkDefaults
from airflow_kstream.notifications import tasks
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.desired import claimed_spec
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.watch import Verdict, Watch

if TYPE_CHECKING:
    from airflow.sdk import Context

_KNOWN, _STORED = "known", "known_streams"
_STATES: Mapping[Phase, str] = {Phase.RUNNING: "still runs", Phase.KILLED: "was killed"}


class VanishedStreamsOperator(TellingOperator):
    """Look after streams that this folder declared once and declares no longer, until a person has stopped them.

    Airflow takes the DAG of a file that is gone for stale and looks at its runs no longer, so the task that watched the
    stream never resumes. This one looks once a run: it restarts such a stream at its horizon, as it was last submitted,
    and its log says with an error that the stream runs undeclared. It fails when a restart fails, and when a stream has
    ended and a person may be needed; it starts a stream that ended by itself again as the `failure` policy says. Where
    no supervisor kept the declaration that the newest claim names, it fails when anything is due, and does nothing.

    It knows the streams of its earlier runs from the state of the cluster's asset and from their XCom `known`: Airflow
    deletes the one while no DAG names the asset, and of the other it may hand out an older run's, as it orders manual
    runs by a date that they lack. A stream that one of them still has and a person has stopped is dropped once more.
    Streams that were never declared here are another DAG's or a person's, and are left alone; one that was declared and
    never started is forgotten.

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
        # What was told is kept with it, for as long as a DAG names it.
        self.inlets = [*self.inlets, *cluster_inlets(cluster_conn_id)]
        self.conn_id = conn_id

    def execute(self, context: Context) -> list[str]:
        """Look after the vanished streams, and return those that nobody has stopped."""
        ti = context["ti"]
        before = self._known(ti)
        vanished = sorted(before - set(self.declared))
        # At once: a look that fails forgets nobody.
        self._keep(ti, {*before, *self.declared})
        running, troubles = self._look_after(vanished) if vanished else ([], [])
        why = "put its file back, or stop it"
        undeclared = [Trouble(EventKind.UNDECLARED, why, name) for name in running]
        self.tell(undeclared, {EventKind.UNDECLARED}, "told_undeclared")
        metrics.cluster_gauge("undeclared_streams", float(len(running)), self.cluster_conn_id)
        self._keep(ti, {*running, *self.declared})
        if troubles:
            raise AirflowFailException("; ".join(troubles))
        return running

    def _known(self, ti: Any) -> set[str]:
        # With a map index: without one, Airflow returns those of all runs that ever were.
        pulled = ti.xcom_pull(task_ids=self.task_id, key=_KNOWN, map_indexes=-1, include_prior_dates=True)
        return {*(pulled or ()), *(tasks.get(asset_uri(self.cluster_conn_id), _STORED) or ())}

    def _keep(self, ti: Any, names: set[str]) -> None:
        ti.xcom_push(_KNOWN, sorted(names))
        tasks.put(asset_uri(self.cluster_conn_id), _STORED, sorted(names))

    def _look_after(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        running, troubles = [], []
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            verdicts = Watch(session).round(names)
            for name, verdict in verdicts.items():
                phase = verdict.step.phase if isinstance(verdict.step, Settled) else None
                if phase is Phase.ENDED:
                    troubles.append(f"{name} is declared no longer, and {verdict.why}")
                elif phase is not Phase.STOPPED and not _never_was(verdict):
                    running.append(name)
                    self._say(name, verdict)
            due = [name for name in running if verdicts[name].calls_for_action]
            troubles += filter(None, [self._act(cluster, session, name) for name in due])
            troubles += self._look_as_itself(cluster, session, [n for n in running if verdicts[n].step is None])
        return running, troubles

    def _look_as_itself(self, cluster: Cluster, watcher: ClusterSession, unseen: Sequence[str]) -> list[str]:
        """Look, with each stream's own rights, at those that the watcher can't see; return why that failed.

        Servers that are away are no stream's trouble, and the first that finds them away looks for all: their event is
        told by those who wait.
        """
        troubles = []
        for name in unseen:
            try:
                troubles.append(self._reconciled(cluster, watcher, name))
            except Unavailable as error:
                self.log.warning("%s is not seen with its own rights either: %s", name, error)
                break
            except KstreamError as error:
                troubles.append(f"{name} is declared no longer, and nobody sees it: {error}")
        return [why for why in troubles if why]

    def _say(self, name: str, verdict: Verdict) -> None:
        left = "" if verdict.remaining is None else f", horizon in {format_duration(verdict.remaining)}"
        left += f", {verdict.freeze}" if verdict.freeze else ""
        advice = "put its file back, or stop it with `kstream streams stop`"
        self.log.error(
            "%s is declared no longer and %s: %s%s; %s", name, _state(verdict.step), verdict.why, left, advice
        )

    def _act(self, cluster: Cluster, watcher: ClusterSession, name: str) -> str:
        """Take the due step; return why that failed, empty if it did not."""
        try:
            return self._reconciled(cluster, watcher, name)
        except KstreamError as error:
            return f"{name} is declared no longer, and what is due can't be done: {error}"

    def _reconciled(self, cluster: Cluster, watcher: ClusterSession, name: str) -> str:
        """Look and take the step that is due; return how the stream ended, empty if it did not."""
        known = claimed_spec(watcher, StreamId(name, cluster.state_dir))
        if not known.submittable:
            self.log.error("%s is watched, and nothing of it is submitted: %s", name, known.doubt)
        with open_session(cluster, known.identity(cluster)) as session:
            engine = engine_of(known.spec, self._spark)
            run = StreamRun(session, known.spec, engine, AirflowSecrets(), declared=known.submittable)
            report = Reconciler(run, tell=self.log.info, patient=False).run(Mode.WATCH)
        self.log.info("%s generation %s: %s", name, report.generation, report.why)
        return f"{name} is declared no longer, and {report.why}" if report.ended else ""

    def _spark(self) -> SparkDefaults:
        return spark_defaults_of(read_connection(self.conn_id)) if self.conn_id else SparkDefaults()


def _never_was(verdict: Verdict) -> bool:
    """Return whether nothing of it was ever claimed or submitted: its file came and went while its DAG was paused."""
    return verdict.step is not None and verdict.generation == 0


def _state(step: Step | None) -> str:
    """Return in words what the watcher saw of it; a stream that it could not see may run or not."""
    if step is None:
        return "is not seen"
    if isinstance(step, Settled):
        return _STATES.get(step.phase, f"is {step.phase}")
    return "still runs" if isinstance(step, Stop) else "is between two generations"
