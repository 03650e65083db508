"""The cause of a failure in the log of the task that failed: for any operator that ran an application of YARN's.

It needs the provider `apache-airflow-providers-apache-spark`.
"""

from __future__ import annotations

from datetime import datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

from airflow_kstream import TriageNotifier

with DAG("example_kstream_triage", schedule=None, start_date=datetime(2026, 1, 1), catchup=False):
    SparkSubmitOperator(
        task_id="nightly",
        conn_id="spark_default",
        application="/opt/jobs/nightly.py",
        # A notifier after it can send its verdict: {{ ti.xcom_pull(key="triage") }}.
        on_failure_callback=[TriageNotifier(cluster_conn_id="example")],
    )
