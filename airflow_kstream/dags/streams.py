"""One DAG for each declared stream: `<cluster connection id>/<stream>.yaml`.

While no run is active, each DAG makes sure every few minutes that its stream runs, and then watches it in one deferred
task for as long as it lives. Pausing or deleting the DAG detaches; it stops no stream. A wrong declaration gets a DAG
that fails and says why, and harms no other.

The `[kstream]` section of Airflow's configuration, on the DAG processor and on every worker, names the folder of the
declarations (`streams_folder`; there is no DAG without it), the interval at which an unwatched stream is checked
(`ensure_every`), Airflow's retries of the watching task (`retries`, `retry_delay`), and the `spark` connection with the
queue and the client of declarations that name none (`spark_conn_id`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_kstream import settings
from airflow_kstream.dags.factory import dags_of_folder, declared_dag
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.operators.streams import SparkStreamOperator


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


def declared(declaration: Path, text: str, taken: set[str]) -> StreamSpec:
    spec = StreamSpec.from_yaml(text)
    if spec.name != declaration.stem:
        raise InvalidInput(f"it declares {spec.name!r}; the file's name is the stream's name")
    if spec.name in taken:
        raise InvalidInput(f"another cluster's folder declares {spec.name!r}; its DAG would be the same")
    taken.add(spec.name)
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


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids.

    Raises InvalidInput: when a setting other than the folder is wrong. That is one import error, and is blamed on no
    declaration.
    """
    schedule = Schedule.configured()
    spark_conn_id = settings.text("spark_conn_id") or None
    # Across the clusters' folders: a stream's name is the name of its DAG.
    taken: set[str] = set()

    def stream_dags(declaration: Path, text: str) -> Iterator[DAG]:
        yield stream_dag(declared(declaration, text, taken), declaration.parent.name, spark_conn_id, schedule)

    return dags_of_folder("streams", "*/*.yaml", stream_dags)
