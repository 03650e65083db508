"""One DAG for each declared stream: `$KSTREAM_STREAMS/<cluster connection id>/<stream>.yaml`.

Each DAG makes sure, every few minutes while no run is under way, that its stream runs, and then watches it in one
deferred task for as long as it lives. Pausing or deleting the DAG detaches; it stops no stream. A declaration that is
wrong gets a DAG that fails and says why, and harms no other.

Environment of the DAG processor and the workers:
  KSTREAM_STREAMS              the folder (required; no DAG without it)
  KSTREAM_ENSURE_EVERY         how soon a stream that nobody watches is looked after again (5m)
  KSTREAM_RETRIES, KSTREAM_RETRY_DELAY    Airflow's retries of the watching task (20, 1m)
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.operators.stream import SparkStreamOperator


def declared(declaration: Path, taken: set[str]) -> StreamSpec:
    try:
        text = declaration.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{declaration} can't be read: {error}") from error
    spec = StreamSpec.from_yaml(text)
    if spec.name != declaration.stem:
        raise InvalidInput(f"{declaration} declares {spec.name!r}; the file's name is the stream's name")
    if spec.name in taken:
        raise InvalidInput(f"{declaration}: another cluster's folder declares {spec.name!r}; its DAG would be the same")
    return spec


def stream_dag(spec: StreamSpec, cluster_conn_id: str) -> DAG:
    with DAG(
        dag_id=f"stream-{spec.name}",
        description=f"Keeps the stream {spec.name} running",
        schedule=parse_duration(os.environ.get("KSTREAM_ENSURE_EVERY", "5m")),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=["kstream"],
    ) as dag:
        SparkStreamOperator(
            task_id="keep",
            stream=spec,
            cluster_conn_id=cluster_conn_id,
            retries=int(os.environ.get("KSTREAM_RETRIES", "20")),
            retry_delay=parse_duration(os.environ.get("KSTREAM_RETRY_DELAY", "1m")),
        )
    return dag


def refused_dag(declaration: Path, why: str) -> DAG:
    with DAG(
        dag_id=f"refused-{declaration.parent.name}-{declaration.stem}",
        description=why,
        schedule=None,
        tags=["kstream", "refused"],
    ) as dag:

        @task
        def say_why() -> None:
            raise InvalidInput(why)

        say_why()
    return dag


folder = os.environ.get("KSTREAM_STREAMS")
names: set[str] = set()
for found in sorted(Path(folder).glob("*/*.yaml")) if folder else ():
    try:
        stream = declared(found, names)
    except InvalidInput as error:
        globals()[f"refused_{found.parent.name}_{found.stem}"] = refused_dag(found, str(error))
        continue
    names.add(stream.name)
    globals()[f"stream_{stream.name}"] = stream_dag(stream, found.parent.name)
