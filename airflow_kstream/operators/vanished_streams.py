"""Keep the streams whose declarations have vanished."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics, settings
from airflow_kstream.assets import asset_uri, cluster_inlets
from airflow_kstream.hooks.cluster import KstreamClusterHook, read_connection, spark_defaults_of
from airflow_kstream.hooks.secrets import AirflowSecrets
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.streams.declarations import Place
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.plan import Phase, Settled, Step, Stop
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.notifications import tasks
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.policy.state_dir import few
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.watch import Verdict, Watch
from airflow_kstream.supervise.streams.orders.desired import claimed_spec
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.spark.engines import engine_of

if TYPE_CHECKING:
    from airflow.sdk import Context

_STORED = "known_streams"
# Names of a row that are looked at, and that a line of the log shows.
_MOST, _SHOWN = 5000, 20
_STATES: Mapping[Phase, str] = {Phase.RUNNING: "still runs", Phase.KILLED: "was killed"}


class VanishedStreamsOperator(TellingOperator):
    """Look after streams that this folder declared once and declares no longer, until a person has stopped them.

    Airflow takes the DAG of a file that is gone for stale and looks at its runs no longer, so the task that watched the
    stream never resumes. This one looks once a run: it restarts such a stream at its horizon, as it was last submitted,
    and its log says with an error that the stream runs undeclared. It fails when a restart fails, and when a stream has
    ended and a person may be needed; it starts a stream that ended by itself again as the `failure` policy says. Where
    no supervisor kept the declaration that the newest claim names, it fails when anything is due, and does nothing.

    It knows the streams that were declared here from a file of the state_dir, which a supervisor alone can write, and
    acts on no other: those are another DAG's, another Airflow's or a person's. One that was declared and never started
    is forgotten. Airflow's store shows persons the same names; one that only the store has is a warning in the log.

    :param declared: the names of the streams that have a file now, refused or not.
    :param cluster_conn_id: the `kstream` connection.
    :param conn_id: the `spark` connection, as of SparkStreamOperator.
    :raises Denied: when the connection's principal is no supervisor of the state_dir: its word would not count.
    """

    def __init__(
        self, *, declared: Sequence[str], cluster_conn_id: str, conn_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.declared = sorted(declared)
        self.cluster_conn_id = cluster_conn_id
        # What pages show is kept with it, for as long as a DAG names it.
        self.inlets = [*self.inlets, *cluster_inlets(cluster_conn_id)]
        self.conn_id = conn_id

    def execute(self, context: Context) -> list[str]:
        """Look after the vanished streams, and return those that nobody has stopped."""
        place = Place(settings.text("installation"), self.cluster_conn_id)
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            known = session.declarations.streams(place)
            vanished = sorted(known - set(self.declared))
            # At once: a look that fails forgets nobody.
            kept = self._keep(session, place, known, known | set(self.declared))
            running, troubles = self._look_after(cluster, session, vanished) if vanished else ([], [])
            self._keep(session, place, kept, {*running, *self.declared})
        self._show(known | set(self.declared), {*running, *self.declared})
        why = "put its file back, or stop it"
        undeclared = [Trouble(EventKind.UNDECLARED, why, name) for name in running]
        self.tell(undeclared, {EventKind.UNDECLARED}, "undeclared")
        metrics.cluster_gauge("undeclared_streams", float(len(running)), self.cluster_conn_id)
        if troubles:
            raise AirflowFailException("; ".join(troubles))
        return running

    def _keep(
        self, session: ClusterSession, place: Place, before: Collection[str], names: Collection[str]
    ) -> frozenset[str]:
        """Keep these names, if they are others than before."""
        if set(names) != set(before):
            session.declarations.keep_streams(place, names)
        return frozenset(names)

    def _show(self, known: Collection[str], names: Collection[str]) -> None:
        """Let Airflow's store show the names to persons, with those that it alone has: nothing is done about these."""
        row = self.shown(_STORED)
        strange = sorted(_names_in(row) - set(known))
        if strange:
            self.log.warning(
                "Only Airflow's store has %s, so nothing is done about them: no supervisor noted in the state_dir that "
                "they were declared here. If one runs, put its file back, and look at it with `kstream streams status "
                "NAME`",
                few(strange, _SHOWN),
            )
        shown = sorted({*names, *strange})
        if shown != row:
            self._store(shown)

    def _store(self, names: Sequence[str]) -> None:
        try:
            tasks.put(asset_uri(self.cluster_conn_id), _STORED, list(names))
        except Exception as error:
            if not is_not_named(error):
                self.log.warning("The known streams can't be stored, so Airflow may show them late: %r", error)

    def _look_after(
        self, cluster: Cluster, session: ClusterSession, names: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        running, troubles = [], []
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


def _names_in(row: object) -> set[str]:
    """Return the streams that a row names: anybody may have written it who may edit assets."""
    names = row if isinstance(row, list) else []
    return {name for name in names[:_MOST] if isinstance(name, str) and is_stream_name(name)}


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
