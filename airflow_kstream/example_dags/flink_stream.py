"""A Flink job, kept running by one task that is never done.

A person says once where its first generation begins; until then the task fails and says so:

    kstream streams start clicks --never-submitted --fresh --cluster example

A job that somebody submitted in application mode becomes this stream's with the declaration in a file:

    kstream streams adopt clicks.yaml --application-id application_1700000000000_0042 --cluster example
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_kstream import FlinkDeploy, FlinkStreamOperator, FlinkStreamSpec, KeytabCredentials, Savepoints

CLICKS = FlinkStreamSpec(
    name="clicks",
    credentials=KeytabCredentials("clicks@EXAMPLE.COM", keytab="/etc/security/keytabs/clicks.keytab"),
    application="hdfs:///apps/clicks.jar",
    # Each generation's checkpoints lie below it, in a folder that its job's id names.
    checkpoints=("/flink/clicks",),
    conf={"execution.checkpointing.interval": "30s"},
    deploy=FlinkDeploy(queue="streams", parallelism=4, slots=2, taskmanager_memory="4g"),
    savepoints=Savepoints(folder="/flink/clicks-savepoints"),
    # A part file that stays open below it is this stream's.
    outputs=("/data/clicks",),
)

with DAG(
    "example_kstream_flink_stream",
    # If the task ever ends, the next run watches the stream again within five minutes.
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["kstream"],
):
    FlinkStreamOperator(task_id="keep", cluster_conn_id="example", stream=CLICKS)
