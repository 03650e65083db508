"""What keeps a cluster in order beside its streams: fresh tickets and sound keytabs, and files that nobody closed."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG

from airflow_kstream import (
    ClusterDoctorOperator,
    HdfsLeaseRecoverOperator,
    HousekeepingOperator,
    KerberosTicketRenewOperator,
    KeytabCheckOperator,
)

BEGIN = datetime(2026, 1, 1)

with DAG("example_kstream_tickets", schedule=timedelta(hours=1), start_date=BEGIN, catchup=False) as tickets:
    # The caches lie on the worker that runs this: a queue, or a shared folder, brings them where they are used.
    KerberosTicketRenewOperator(task_id="renew", cluster_conn_id="example") >> KeytabCheckOperator(
        task_id="check", cluster_conn_id="example"
    )

with DAG("example_kstream_files", schedule=timedelta(minutes=30), start_date=BEGIN, catchup=False, max_active_runs=1):
    HdfsLeaseRecoverOperator(
        task_id="recover",
        cluster_conn_id="example",
        path="/data/landing",
        request={"patterns": ["*.in-progress"], "min_age": "30m"},
    )

with DAG("example_kstream_cluster", schedule=timedelta(days=1), start_date=BEGIN, catchup=False):
    ClusterDoctorOperator(task_id="examine", cluster_conn_id="example")
    # Without dry_run=False it only tells what it would remove from the state_dir.
    HousekeepingOperator(task_id="clean", cluster_conn_id="example")
