"""A stream that is declared in Python: submitted, watched and restarted in time by one task that is never done.

While the stream is well, the task is deferred and holds no worker slot. No click in Airflow stops the stream;
`kstream streams stop orders` does.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_kstream import (
    Deploy,
    HeartbeatPolicy,
    KafkaPolicy,
    KeytabCredentials,
    OnStall,
    SecretRef,
    SparkStreamOperator,
    StreamSpec,
)

ORDERS = StreamSpec(
    name="orders",
    credentials=KeytabCredentials("orders@EXAMPLE.COM", keytab="/etc/security/keytabs/orders.keytab"),
    application="/opt/jobs/orders.py",
    checkpoints=("/data/checkpoints/orders",),
    arguments=("--topic", "orders"),
    conf={"spark.ssl.keyPassword": SecretRef("conn:orders")},
    deploy=Deploy(queue="streams", executors=4, executor_memory="4g"),
    heartbeat=HeartbeatPolicy(on_stall=OnStall.RESTART),
    kafka=KafkaPolicy("broker1.example.com:9092"),
)

with DAG(
    "example_kstream_stream",
    # If the task ever ends, the next run watches the stream again within five minutes.
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["kstream"],
):
    SparkStreamOperator(task_id="keep", cluster_conn_id="example", stream=ORDERS)
