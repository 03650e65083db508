"""Fresh tokens for a long Spark job without a keytab, which somebody else submitted.

A declared stream with `credentials: {refresh: true}` needs none of this.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_kstream import DelegationTokenPushOperator

with DAG(
    "example_kstream_token_push",
    # At most half of the cluster's renew interval, which is a day by default.
    schedule=timedelta(hours=12),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"application": "application_1700000000000_0042"},
):
    DelegationTokenPushOperator(
        task_id="push",
        cluster_conn_id="example",
        application="{{ params.application }}",
        principal="etl@EXAMPLE.COM",
        keytab="/etc/security/keytabs/etl.keytab",
    )
