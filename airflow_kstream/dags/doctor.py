"""One DAG for each folder of streams, which examines its connection's cluster, and reports only what is new.

`doctor-<cluster connection id>` runs every `[kstream] doctor_every` (1d). It reads what the servers run with, this
worker's Kerberos and Spark client, and the streams' claims, and foretells what will go wrong: which stream, from when
on, and the line of configuration that prevents it. A run is red when an error or a warning is new since the run before,
and green again when nothing is, so that each is seen once; each is an event as well, until it is found no longer.

A finding that is to stay is accepted in `<connection id>.yaml` of `[kstream] doctor_folder`, with who accepted it, why
and until when:

  accepted:
    - finding: nm-recovery
      by: jane@example.com
      why: NodeManagers are restarted in the streams' maintenance window only
      until: 2027-06-30
      streams: [orders]          # all without it

What could not be asked is in the log, with the right that is missing.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_kstream import settings
from airflow_kstream.dags.factory import declared_dag
from airflow_kstream.dags.ids import doctor_id
from airflow_kstream.model.airflow_options import AirflowOptions
from airflow_kstream.operators.cluster_doctor import ClusterDoctorOperator


def doctor_dag(cluster: str, options: AirflowOptions) -> DAG:
    """Make the DAG that examines one folder's connection, with the options that its streams share.

    Raises InvalidInput: when `[kstream] doctor_every` is wrong.
    """
    about, every = f"Foretells what will go wrong on {cluster}", settings.duration("doctor_every")
    with declared_dag(cluster, doctor_id(cluster), about, every, options, tags=["doctor"], doc_md=__doc__) as dag:
        ClusterDoctorOperator(task_id="examine", cluster_conn_id=cluster, retries=2, retry_delay=timedelta(minutes=5))
    return dag
