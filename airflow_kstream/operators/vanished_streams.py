"""Keep the streams whose declarations have vanished, and show those whose DAG got another id because `[kstream]
dag_id_prefix` changed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics, settings
from airflow_kstream.assets import asset_uri
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.connection import AirflowSecrets, read_connection, spark_defaults_of
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.printable import printable_line
from airflow_kstream.model.streams.declarations import DeclarationFolder
from airflow_kstream.model.streams.event import EventKind, ToldSubject, Trouble
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.notifications import tasks
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.policy.state_dir import few
from airflow_kstream.states.recorder import is_not_named
from airflow_kstream.states.tasks import is_watched
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.told import ToldNotes
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.restart.undeclared import UndeclaredStreams

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

_KEY = "dag_ids"
# As Airflow has it.
_LONGEST_ID = 250


@dataclass(frozen=True)
class MovedStreams:
    """The declared streams of a folder whose former DAG is gone and whose present one is not on yet.

    Airflow looks no longer at the runs of a DAG that is gone, so the task that watched the stream never resumes.
    `prefix` is the present one, and `dag_of` makes an id of a stream's name and a prefix.
    """

    subject: ToldSubject
    prefix: str
    dag_of: Callable[[str, str], str]

    @classmethod
    def of(cls, installation: str, cluster: str, prefix: str, dag_of: Callable[[str, str], str]) -> MovedStreams:
        return cls(ToldSubject(installation, cluster, key=_KEY), prefix, dag_of)

    def look(self, notes: ToldNotes, known: Collection[str], declared: Collection[str]) -> dict[str, str] | None:
        """Return the ids of their former DAGs; None where there never was a prefix. `known` are the streams that were
        declared before this run.

        The present prefix is kept among the notes of our own user; where none is, it was empty. A stream is forgotten
        once a task of its present DAG watches it. Raises as `ToldNotes.kept`.
        """
        before = notes.kept(self.subject)
        if not before and not self.prefix:
            return None
        moved, former = _moved_in(before), str(before.get("prefix") or "")
        if former != self.prefix:
            moved = dict.fromkeys(known, former) | moved
        moved = {
            name: was
            for name, was in moved.items()
            if name in declared and was != self.prefix and not is_watched(self.dag_of(name, self.prefix))
        }
        now = {"prefix": self.prefix, "moved": moved}
        if now != before:
            self._keep(notes, now)
        return {name: self.dag_of(name, was) for name, was in moved.items()}

    def _keep(self, notes: ToldNotes, now: Mapping[str, object]) -> None:
        try:
            notes.keep(self.subject, now)
        except KstreamError as error:
            log.warning(
                "Which streams have another DAG than before can't be kept, so the next run looks again: %s", error
            )


def _moved_in(kept: Mapping[str, object]) -> dict[str, str]:
    moved = kept.get("moved")
    return {str(name): str(was) for name, was in moved.items()} if isinstance(moved, Mapping) else {}


def variable_of(cluster: str) -> str:
    """Return the name of the Airflow Variable by which the DAG processor learns of them."""
    return f"kstream_moved_dags_{cluster}"


def show_moved(variable: str, moved: Mapping[str, str]) -> None:
    """Tell the DAG processor, which reads no note, which DAGs are to say that they must be unpaused."""
    try:
        shown = Variable.get(variable, default=None)
        if moved and shown != (text := json.dumps(moved, sort_keys=True)):
            Variable.set(variable, text, description="Former DAGs of streams, until the present ones are on")
        if not moved and shown is not None:
            Variable.delete(variable)
    except Exception as error:
        log.warning("Which streams have another DAG than before can't be shown in the DAGs' names: %r", error)


def shown_moved(variable: str) -> dict[str, str]:
    """Return the former DAGs of streams that are to be unpaused, nothing where that can't be read."""
    try:
        moved = json.loads(Variable.get(variable, default="{}"))
    except Exception as error:
        log.warning("Which streams have another DAG than before can't be read: %r", error)
        return {}
    if not isinstance(moved, dict):
        return {}
    # Who may edit Variables wrote it, and it becomes a part of a DAG's name.
    return {name: printable_line(str(was)[:_LONGEST_ID]) for name, was in moved.items() if is_stream_name(name)}


_STORED = "known_streams"
# Names of a row that are looked at, and that a line of the log shows.
_MOST, _SHOWN = 5000, 20


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

    Example::

        names = [file.stem for file in Path("/opt/airflow/streams").glob("*.yaml")]
        VanishedStreamsOperator(task_id="look_after", declared=names, cluster_conn_id="prod", conn_id="spark_default")

    :param declared: the names of the streams that have a file now, refused or not.
    :param cluster_conn_id: the `kstream` connection.
    :param conn_id: the `spark` connection, as of SparkStreamOperator.
    :param prefix: what stands before the ids of the streams' DAGs. Where that was another before, it also looks after
        the streams whose DAG has another id now, until a task of that DAG watches; and it tells `nobody_watches`.
    :param dag_of: makes the id of a stream's DAG of its name and a prefix.
    :raises Denied: when the connection's principal is not a supervisor of the state_dir: its word would not count.
    """

    def __init__(
        self,
        *,
        declared: Sequence[str],
        cluster_conn_id: str,
        conn_id: str | None = None,
        prefix: str = "",
        dag_of: Callable[[str, str], str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, **kwargs)
        self.prefix = prefix
        self.dag_of = dag_of
        self.declared = sorted(declared)
        self.conn_id = conn_id

    def execute(self, context: Context) -> list[str]:
        """Look after the vanished streams, and return those that nobody has stopped."""
        place = DeclarationFolder(settings.text("installation"), self.cluster_conn_id)
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            others = self._moved(session, place)
            moved = others or {}
            undeclared = UndeclaredStreams(session, place, self._engine_of, AirflowSecrets(), moved)
            report = undeclared.look_after(self.declared)
        self._show(report.known, {*report.running, *self.declared})
        why = "put its file back, or stop it"
        without_file = [name for name in report.running if name not in moved]
        seen = [Trouble(EventKind.UNDECLARED, why, name) for name in without_file]
        self.tell(seen, {EventKind.UNDECLARED}, "undeclared")
        if others is not None:
            self._tell_moved({name: moved[name] for name in report.running if name in moved})
        metrics.cluster_gauge("undeclared_streams", float(len(without_file)), self.cluster_conn_id)
        if report.troubles:
            raise AirflowFailException("; ".join(report.troubles))
        return list(report.running)

    def _moved(self, session: ClusterSession, place: DeclarationFolder) -> dict[str, str] | None:
        """Return the former DAGs of the streams whose present one is not on; None where ids never had a prefix."""
        if self.dag_of is None:
            return None
        moved = MovedStreams.of(place.installation, self.cluster_conn_id, self.prefix, self.dag_of)
        return moved.look(session.told, session.declarations.streams(place), self.declared)

    def _tell_moved(self, moved: Mapping[str, str]) -> None:
        """Tell that nobody watches these but this task, here and in the names of their DAGs."""
        words = "{}, which watched it, is gone: unpause its DAG with the prefix {!r}. This task keeps it until then"
        seen = [Trouble(EventKind.UNWATCHED, words.format(was, self.prefix), name) for name, was in moved.items()]
        self.tell(seen, {EventKind.UNWATCHED}, "moved")
        show_moved(variable_of(self.cluster_conn_id), moved)

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

    def _engine_of(self, spec: StreamSpec) -> Engine:
        return engine_of(spec, self._spark)

    def _spark(self) -> SparkDefaults:
        return spark_defaults_of(read_connection(self.conn_id)) if self.conn_id else SparkDefaults()


def _names_in(row: object) -> set[str]:
    """Return the streams that a row names: anybody may have written it who may edit assets."""
    names = row if isinstance(row, list) else []
    return {name for name in names[:_MOST] if isinstance(name, str) and is_stream_name(name)}
