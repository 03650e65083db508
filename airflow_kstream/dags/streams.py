"""One DAG for each declared stream: `<cluster connection id>/<stream>.yaml`.

While no run is active, each DAG makes sure every few minutes that its stream runs, and then watches it in one deferred
task for as long as it lives. Pausing or deleting the DAG detaches; it stops no stream.

A wrong declaration harms no other. Its DAG keeps its id and says what is refused; a stream that was submitted before is
kept as it was last submitted, and the task of any other fails and says why. The DAG's id is
`stream-<cluster connection id>.<stream>`: several clusters may declare streams of one name. One more DAG for each
cluster's folder looks after streams that it once saw declared, whose files were removed, and which nobody stopped; it
also tells the tasks that watch which policies were edited. Further ones let a person control the streams, show which of
them need a hand, foretell what will go wrong, and clean up their `state_dir`.

The `[kstream]` section of Airflow's configuration, on the DAG processor and on every worker, names the folder of the
declarations (`streams_folder`; there is no DAG without it), the interval at which an unwatched stream is checked
(`ensure_every`), those of the look at all streams (`fleet_every`) and of the doctor (`doctor_every`), Airflow's
retries of the watching task (`retries`, `retry_delay`), and the `spark` connection with the queue and the client of
declarations that name none (`spark_conn_id`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, get_parsing_context

from airflow_kstream import settings
from airflow_kstream.dags.control import control_dag
from airflow_kstream.dags.doctor import doctor_dag
from airflow_kstream.dags.factory import (
    dags_of_folder,
    declarations,
    declared_dag,
    is_wanted,
    options_in,
    refusal,
    refusing_dag,
    shown,
    stream_folders,
)
from airflow_kstream.dags.fleet import fleet_dag
from airflow_kstream.dags.housekeeping import housekeeping_dag
from airflow_kstream.dags.ids import (
    Family,
    control_id,
    doctor_id,
    fleet_id,
    housekeeping_id,
    is_made,
    namesake,
    prefix,
    refused_id,
    require_families,
    stream_id,
    undeclared_id,
)
from airflow_kstream.model.airflow_options import AirflowOptions, options_of
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.names import called
from airflow_kstream.model.streams.stream import EngineName
from airflow_kstream.notifications.notifier import require_usable
from airflow_kstream.operators.declared_stream import declared
from airflow_kstream.operators.policy_edits import PolicyEditsOperator
from airflow_kstream.operators.streams import ClaimedStreamOperator, FlinkStreamOperator, SparkStreamOperator
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator, shown_moved, variable_of

# The ids of a folder's other DAGs, which concern all of its streams.
_OF_A_FOLDER = (undeclared_id, control_id, doctor_id, fleet_id, housekeeping_id)
_LOOKS = {Family.DOCTOR: doctor_dag, Family.FLEET: fleet_dag, Family.HOUSEKEEPING: housekeeping_dag}


@dataclass(frozen=True)
class Schedule:
    """The interval at which an unwatched stream is checked, and the retries of the task that watches it."""

    ensure_every: timedelta
    retries: int
    retry_delay: timedelta

    @classmethod
    def configured(cls) -> Schedule:
        return cls(
            settings.duration("ensure_every"), settings.whole_number("retries"), settings.duration("retry_delay")
        )


def stream_dag(
    fields: Mapping[str, Any],
    cluster_conn_id: str,
    spark_conn_id: str | None,
    schedule: Schedule,
    options: AirflowOptions,
    former: str = "",
) -> DAG:
    """Make the DAG of a stream from the fields of its declaration, which were checked.

    `former` is the id of the DAG that watched the stream, as long as this one is not on in its place.
    """
    name = fields["name"]
    dag_id, about = stream_id(cluster_conn_id, name), f"Keeps the stream {called(name, fields.get('app_name'))} running"
    says = {"dag_display_name": f"{dag_id}: turn it on; {former}, which watched its stream, is gone"} if former else {}
    with declared_dag(cluster_conn_id, dag_id, about, schedule.ensure_every, options, doc_md=__doc__, **says) as dag:
        _keeper_of(fields, spark_conn_id)(
            task_id="keep",
            # As the file has them: to check and to write all defaults, too, took twice as long for a fleet.
            stream={name: value for name, value in fields.items() if name != "airflow"},
            cluster_conn_id=cluster_conn_id,
            follows_edits=True,
            retries=schedule.retries,
            retry_delay=schedule.retry_delay,
        )
    return dag


def _keeper_of(fields: Mapping[str, Any], spark_conn_id: str | None) -> Callable[..., BaseOperator]:
    """Return the operator for a declaration that was checked, without its arguments but the client's connection."""
    if EngineName(fields.get("engine", EngineName.SPARK)) in SparkStreamOperator.engines:
        return partial(SparkStreamOperator, conn_id=spark_conn_id)
    return FlinkStreamOperator


def refused_dag(declaration: Path, why: str, spark_conn_id: str | None, schedule: Schedule) -> DAG | None:
    """Make the DAG that keeps a stream whose declaration is refused; None if the file's name is not a stream's name.

    Airflow no longer looks at the runs of a DAG that disappears, and nobody would restart the stream at its horizon. A
    file that is half written is refused for a moment only.
    """
    cluster, name = declaration.parent.name, declaration.stem
    if not is_stream_name(name):
        return None
    whole, also = refusal(str(declaration), why), f"streams-{cluster}-{name}"
    with declared_dag(
        cluster,
        stream_id(cluster, name),
        whole,
        schedule.ensure_every,
        options_in(declaration, cluster),
        tags=["refused"],
        doc_md=whole,
        dag_display_name=shown(also, why),
    ) as dag:
        ClaimedStreamOperator(
            task_id="keep",
            name=name,
            refusal=whole,
            cluster_conn_id=cluster,
            conn_id=spark_conn_id,
            follows_edits=True,
            retries=schedule.retries,
            retry_delay=schedule.retry_delay,
        )
    return dag


def vanished_dag(
    cluster: str, files: Sequence[Path], spark_conn_id: str | None, schedule: Schedule, options: AirflowOptions
) -> DAG:
    """Make the DAG that looks after the cluster's streams whose files are gone, and tells of those that were edited.

    It is not paused: nobody thinks of it when the first file is added, and it has nothing to do before one changes.
    Neither task waits for the other: an edit needs no server of the cluster.
    """
    about = f"Looks after streams of {cluster} that run and are declared no longer, and tells of edited policies"
    with declared_dag(
        cluster,
        undeclared_id(cluster),
        about,
        schedule.ensure_every,
        options,
        doc_md=__doc__,
        is_paused_upon_creation=False,
    ) as dag:
        names = [file.stem for file in files]
        VanishedStreamsOperator(
            task_id="look_after",
            declared=names,
            cluster_conn_id=cluster,
            conn_id=spark_conn_id,
            prefix=prefix(),
            dag_of=partial(stream_id, cluster),
        )
        PolicyEditsOperator(task_id="policy_edits", declarations=files, cluster_conn_id=cluster)
    return dag


def settings_dags() -> dict[str, DAG]:
    """Make the DAGs that say what is wrong with `[kstream] notifier` and `without_dags`, none if nothing is.

    It is not an import error: who is to hear of events must not decide whether streams are watched. Nor does the start
    of any other task import the notifier.
    """
    checks: Mapping[str, tuple[Callable[[], None], str]] = {
        "streams-notifier": (lambda: require_usable(settings.notifier(), "[kstream] "), "nobody hears of them"),
        "streams-without_dags": (require_families, "the other families that it names have no DAGs"),
    }
    made = {}
    for name, (require, still) in checks.items():
        if not is_wanted(refused_id(name)):
            continue
        try:
            require()
        except InvalidInput as error:
            dag = refusing_dag(name, "airflow.cfg", f"{error.message}. Streams are watched, and {still}")
            made[dag.dag_id] = dag
    return made


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids.

    A folder's other DAGs have the queue, owner, tags and executor_config that its declarations share: their tasks
    need the same keytabs. Where a task starts, Airflow has obeyed them already, and nothing is read for it.

    Raises InvalidInput: when a setting other than the folder is wrong. That is one import error, and is blamed on no
    declaration.
    """
    schedule = Schedule.configured()
    spark_conn_id = settings.text("spark_conn_id") or None

    # Of a refused declaration none: its typo must not move the folder's other tasks.
    shared: dict[str, AirflowOptions] = {}
    clusters = [folder.name for folder in stream_folders()]
    namesakes = {cluster: other for cluster in clusters if (other := namesake(cluster, clusters))}

    @cache
    def moved(cluster: str) -> dict[str, str]:
        # A task that starts needs no names, and who never set a prefix pays for no question.
        return shown_moved(variable_of(cluster)) if prefix() and get_parsing_context().dag_id is None else {}

    def stream_dags(declaration: Path, text: str) -> Iterator[DAG]:
        cluster = declaration.parent.name
        if other := namesakes.get(cluster):
            raise InvalidInput(f"its DAGs would have the ids of those of {other}; give connection {cluster} another id")
        fields = declared(declaration, text)
        options = options_of(fields)
        yield stream_dag(fields, cluster, spark_conn_id, schedule, options, moved(cluster).get(declaration.stem, ""))
        shared[cluster] = shared.get(cluster, options).shared_with(options)

    def dag_of_refused(declaration: Path, why: str) -> DAG | None:
        known = declaration.parent.name not in namesakes
        return refused_dag(declaration, why, spark_conn_id, schedule) if known else None

    def ids(declaration: Path) -> list[str]:
        return [stream_id(declaration.parent.name, declaration.stem)]

    made = dags_of_folder("streams", "*/*.yaml", ids, stream_dags, dag_of_refused)
    for folder in stream_folders():
        # Of a folder without a file, too: its last stream may run on.
        if folder.name in namesakes or not is_wanted(*(id_of(folder.name) for id_of in _OF_A_FOLDER)):
            continue
        files = declarations(folder, "*.yaml")
        options = shared.get(folder.name, AirflowOptions())
        vanished = vanished_dag(folder.name, files, spark_conn_id, schedule, options)
        of_all = [dag_of(folder.name, options) for family, dag_of in _LOOKS.items() if is_made(family)]
        if is_made(Family.CONTROL):
            of_all.append(control_dag(folder.name, [file.stem for file in files], options))
        made |= {dag.dag_id: dag for dag in (vanished, *of_all)}
    return made | (settings_dags() if made else {})
