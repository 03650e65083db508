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
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.templates.declarations import declared_dag, declared_dags


def duration(variable: str, default: str) -> timedelta:
    try:
        return parse_duration(os.environ.get(variable, default))
    except InvalidInput as error:
        raise InvalidInput(f"${variable}: {error.message}") from error


# Here, so that what is wrong with them is one import error, and blamed on no declaration.
ENSURE_EVERY = duration("KSTREAM_ENSURE_EVERY", "5m")
RETRY_DELAY = duration("KSTREAM_RETRY_DELAY", "1m")
RETRIES = int(os.environ.get("KSTREAM_RETRIES", "20"))


def declared(declaration: Path, text: str, taken: set[str]) -> StreamSpec:
    spec = StreamSpec.from_yaml(text)
    if spec.name != declaration.stem:
        raise InvalidInput(f"it declares {spec.name!r}; the file's name is the stream's name")
    if spec.name in taken:
        raise InvalidInput(f"another cluster's folder declares {spec.name!r}; its DAG would be the same")
    taken.add(spec.name)
    return spec


def stream_dag(spec: StreamSpec, cluster_conn_id: str) -> DAG:
    about = f"Keeps the stream {spec.name} running"
    with declared_dag(f"stream-{spec.name}", about, ENSURE_EVERY, doc_md=__doc__) as dag:
        SparkStreamOperator(
            task_id="keep",
            stream=spec,
            cluster_conn_id=cluster_conn_id,
            retries=RETRIES,
            retry_delay=RETRY_DELAY,
        )
    return dag


# Across the clusters' folders: a stream's name is the name of its DAG.
names: set[str] = set()


def stream_dags(declaration: Path, text: str) -> Iterator[DAG]:
    yield stream_dag(declared(declaration, text, names), declaration.parent.name)


globals().update(declared_dags("streams", "*/*.yaml", stream_dags))
