"""A batch that reads what a stream has written, once the stream has all that had arrived by the interval's end.

The stream declares `kafka`, so it is done as soon as it has reached the offsets of that moment, also if nothing new
arrives. A stream that reads something else, and may get nothing new for long, needs `quiet_after`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, task

from airflow_kstream import StreamProgressSensor

with DAG("example_kstream_progress", schedule="0 6 * * *", start_date=datetime(2026, 1, 1), catchup=False):
    orders = StreamProgressSensor(
        task_id="orders_are_in",
        cluster_conn_id="example",
        stream="orders",
        moment="{{ data_interval_end }}",
        timeout=4 * 60 * 60,
        deferrable=True,
    )

    @task
    def report(progress: Any) -> None:
        print(f"{progress['stream']} is complete up to {progress['moment']}, proven by {progress['proof']}")

    report(orders.output)
