"""One DAG for each declared stream: `<cluster connection id>/<stream>.yaml`.

While no run is active, each DAG makes sure every few minutes that its stream runs, and then watches it in one deferred
task for as long as it lives. Pausing or deleting the DAG detaches; it stops no stream.

A wrong declaration harms no other. Its DAG keeps its id, says what is refused, and keeps a stream that was already
submitted as that was last submitted; for any other it fails and says why. While two clusters declare one name, the
first one's DAG has the id, and the second one's stream is kept as it was last submitted. One more DAG for each cluster
looks after streams whose files were removed and which nobody stopped.

The `[kstream]` section of Airflow's configuration, on the DAG processor and on every worker, names the folder of the
declarations (`streams_folder`; there is no DAG without it), the interval at which an unwatched stream is checked
(`ensure_every`), Airflow's retries of the watching task (`retries`, `retry_delay`), and the `spark` connection with the
queue and the client of declarations that name none (`spark_conn_id`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_kstream import settings
from airflow_kstream.dags.factory import dags_of_folder, declared_dag, fit_for_id, refusal, refused_id, shown
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.operators.claimed_streams import ClaimedStreamOperator
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator


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


def declared(declaration: Path, text: str, owner: str) -> StreamSpec:
    """Read a declaration. `owner` is the first cluster that has a file of this name."""
    spec = StreamSpec.from_yaml(text)
    if spec.name != declaration.stem:
        raise InvalidInput(f"it declares {spec.name!r}; the file's name is the stream's name")
    if owner != declaration.parent.name:
        raise InvalidInput(f"another cluster's folder declares {spec.name!r}, too ({owner}); its DAG would be the same")
    return spec


def stream_dag(spec: StreamSpec, cluster_conn_id: str, spark_conn_id: str | None, schedule: Schedule) -> DAG:
    about = f"Keeps the stream {spec.name} running"
    with declared_dag(f"stream-{spec.name}", about, schedule.ensure_every, doc_md=__doc__) as dag:
        SparkStreamOperator(
            task_id="keep",
            stream=spec,
            cluster_conn_id=cluster_conn_id,
            conn_id=spark_conn_id,
            retries=schedule.retries,
            retry_delay=schedule.retry_delay,
        )
    return dag


def refused_dag(declaration: Path, why: str, owner: str, spark_conn_id: str | None, schedule: Schedule) -> DAG | None:
    """Make the DAG that keeps a stream whose declaration is refused; None if the file's name is no stream's name.

    Airflow no longer looks at the runs of a DAG that disappears, and nobody would restart the stream at its horizon. A
    file that is half written is refused for a moment only.
    """
    cluster, name = declaration.parent.name, declaration.stem
    if not is_stream_name(name):
        return None
    whole, also = refusal(str(declaration), why), f"streams-{cluster}-{name}"
    with declared_dag(
        f"stream-{name}" if owner == cluster else refused_id(also),
        whole,
        schedule.ensure_every,
        doc_md=whole,
        dag_display_name=shown(also, why),
        tags=["kstream", "refused"],
    ) as dag:
        ClaimedStreamOperator(
            task_id="keep",
            name=name,
            refusal=whole,
            cluster_conn_id=cluster,
            conn_id=spark_conn_id,
            retries=schedule.retries,
            retry_delay=schedule.retry_delay,
        )
    return dag


def vanished_dag(cluster: str, names: Iterable[str], spark_conn_id: str | None, schedule: Schedule) -> DAG:
    """Make the DAG that looks after the cluster's streams whose files are gone."""
    about = f"Looks after streams of {cluster} that run and are declared no longer"
    with declared_dag(f"undeclared-{fit_for_id(cluster)}", about, schedule.ensure_every, doc_md=__doc__) as dag:
        VanishedStreamsOperator(
            task_id="look_after", declared=tuple(names), cluster_conn_id=cluster, conn_id=spark_conn_id
        )
    return dag


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids.

    Raises InvalidInput: when a setting other than the folder is wrong. That is one import error, and is blamed on no
    declaration.
    """
    schedule = Schedule.configured()
    spark_conn_id = settings.text("spark_conn_id") or None
    # By file and not by content: a typo in one cluster's file must not hand its DAG to another cluster's stream.
    owners: dict[str, str] = {}
    by_cluster: dict[str, set[str]] = {}

    def owner(declaration: Path) -> str:
        by_cluster.setdefault(declaration.parent.name, set()).add(declaration.stem)
        return owners.setdefault(declaration.stem, declaration.parent.name)

    def stream_dags(declaration: Path, text: str) -> Iterator[DAG]:
        spec = declared(declaration, text, owner(declaration))
        yield stream_dag(spec, declaration.parent.name, spark_conn_id, schedule)

    def dag_of_refused(declaration: Path, why: str) -> DAG | None:
        return refused_dag(declaration, why, owner(declaration), spark_conn_id, schedule)

    made = dags_of_folder("streams", "*/*.yaml", stream_dags, dag_of_refused)
    for cluster, names in by_cluster.items():
        dag = vanished_dag(cluster, names, spark_conn_id, schedule)
        made[dag.dag_id] = dag
    return made
