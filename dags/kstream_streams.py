"""One DAG for each declared stream: `$KSTREAM_STREAMS/<cluster connection id>/<stream>.yaml`.

Each DAG makes sure, every few minutes while no run is under way, that its stream runs, and then watches it in one
deferred task for as long as it lives. Pausing or deleting the DAG detaches; it stops no stream.

Environment of the DAG processor and the workers:
  KSTREAM_STREAMS              the folder (required; no DAG without it)
  KSTREAM_ENSURE_EVERY         how soon a stream that nobody watches is looked after again (5m)
  KSTREAM_RETRIES, KSTREAM_RETRY_DELAY    Airflow's retries of the watching task (20, 1m)
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.operators.stream import SparkStreamOperator


def stream_dag(declaration: Path) -> DAG:
    with DAG(
        dag_id=f"stream-{declaration.stem}",
        description=f"Keeps the stream {declaration.stem} running",
        schedule=parse_duration(os.environ.get("KSTREAM_ENSURE_EVERY", "5m")),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=["kstream"],
    ) as dag:
        SparkStreamOperator(
            task_id="keep",
            stream=StreamSpec.from_yaml(declaration.read_text()),
            cluster_conn_id=declaration.parent.name,
            retries=int(os.environ.get("KSTREAM_RETRIES", "20")),
            retry_delay=parse_duration(os.environ.get("KSTREAM_RETRY_DELAY", "1m")),
        )
    return dag


folder = os.environ.get("KSTREAM_STREAMS")
for found in sorted(Path(folder).glob("*/*.yaml")) if folder else ():
    globals()[f"stream_{found.stem}"] = stream_dag(found)
