"""One DAG for each folder of streams, which looks at all of them and is red for those that need a hand.

`fleet-<cluster connection id>` looks every `[kstream] fleet_every` (5m), and whenever a person runs it. Its first task
looks once at all streams of the connection's `state_dir` with the connection's own rights, and changes nothing. Its
second one is mapped over those alone that need a hand: each instance has the stream's name and fails with the cause and
the way out. So the newest run's state is the fleet's: green, with the second task skipped, when nobody has to do
anything.

While the cluster is away, the first task alone waits for its retry, for up to an hour, and then fails. While the
cluster is frozen, the streams whose restart or end falls into the freeze are shown, all of them as one. The DAG tells
nobody: the tasks that watch the streams do (`[kstream] notifier`), once for each event.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_kstream import settings
from airflow_kstream.dags.factory import declared_dag
from airflow_kstream.dags.ids import fleet_id
from airflow_kstream.model.airflow_options import AirflowOptions
from airflow_kstream.operators.fleet_look import FleetLookOperator, NeedsAHandOperator

# An hour without the cluster is one run that waits, and is green afterwards.
_RETRIES, _RETRY_DELAY = 12, timedelta(minutes=5)


def fleet_dag(cluster: str, options: AirflowOptions) -> DAG:
    """Make the DAG that looks at the streams of one folder. `options` are those that its declarations share.

    Raises InvalidInput: when `[kstream] fleet_every` is wrong.
    """
    about, every = f"Looks at all streams of {cluster}, and shows which need a hand", settings.duration("fleet_every")
    with declared_dag(cluster, fleet_id(cluster), about, every, options, tags=["fleet"], doc_md=__doc__) as dag:
        look = FleetLookOperator(task_id="look", cluster_conn_id=cluster, retries=_RETRIES, retry_delay=_RETRY_DELAY)
        NeedsAHandOperator.partial(task_id="hand", map_index_template="{{ task.subject }}", retries=0).expand(
            hand=look.output
        )
    return dag
