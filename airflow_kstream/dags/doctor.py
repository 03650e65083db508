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

One DAG for each folder of streams, which looks at all of them and is red for those that need a hand.

`fleet-<cluster connection id>` looks every `[kstream] fleet_every` (15m), and whenever a person runs it. Its first task
looks once at all streams of the connection's `state_dir` with the connection's own rights, and changes nothing. Its
second one is mapped over those alone that need a hand: each instance has the stream's name and fails with the cause and
the way out. So the newest run's state is the fleet's: green, with the second task skipped, when nobody has to do
anything.

While the cluster is away, the first task alone waits for its retry, for up to an hour, and then fails. While the
cluster is frozen, the streams whose restart or end falls into the freeze are shown, all of them as one. The DAG tells
nobody: the tasks that watch the streams do (`[kstream] notifier`), once for each event.

One DAG for each folder of streams, which shows daily what nobody needs any longer in the connection's `state_dir`.

`housekeeping-<cluster connection id>` finds drafts of writers that died, and history beyond what is kept. By schedule
it is always a dry run: its log has each file that would go, and why. A person starts a run by hand with another form to
remove it. Nothing is removed while the cluster is frozen.

For each stream that is gone the log has the command that removes its folder. A stream is gone if no file of `[kstream]
streams_folder` declares it, whichever the connection, a person stopped it or it never ran, nothing of it lives in YARN,
it owns no checkpoint, and nothing in its folder is younger than `older_than`. Where several Airflows declare
streams of one `state_dir`, this DAG knows the files of one: ask the others first. If a stream comes back later, its
checkpoint with data is refused until a person takes it over: nothing is lost, and nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param

from airflow_kstream import settings
from airflow_kstream.dags.factory import declared_dag
from airflow_kstream.dags.ids import doctor_id, fleet_id, housekeeping_id
from airflow_kstream.model.streams.airflow_options import AirflowOptions
from airflow_kstream.operators.cluster_doctor import ClusterDoctorOperator
from airflow_kstream.operators.fleet_look import FleetLookOperator, NeedsAHandOperator
from airflow_kstream.operators.housekeeping import HousekeepingOperator

# The form with which a person starts a run by hand.
FORM: Mapping[str, dict[str, Any]] = {
    "dry_run": {
        "default": True,
        "title": "Dry run",
        "description": "Only log what would be removed, and why.",
        "type": "boolean",
    },
    "older_than": {
        "default": "30d",
        "title": "Older than",
        "description": "Only files unchanged for at least this long; 1d or more.",
        "type": "string",
        "pattern": r"^(\d+(\.\d+)?(ms|s|m|h|d|w))+$",
    },
}


# An hour without the cluster is one run that waits, and is green afterwards.
_RETRIES, _RETRY_DELAY = 12, timedelta(minutes=5)


def doctor_dag(cluster: str, options: AirflowOptions) -> DAG:
    """Make the DAG that examines one folder's connection, with the options that its streams share.

    Raises InvalidInput: when `[kstream] doctor_every` is wrong.
    """
    about, every = f"Foretells what will go wrong on {cluster}", settings.duration("doctor_every")
    with declared_dag(cluster, doctor_id(cluster), about, every, options, tags=["doctor"], doc_md=__doc__) as dag:
        ClusterDoctorOperator(task_id="examine", cluster_conn_id=cluster, retries=2, retry_delay=timedelta(minutes=5))
    return dag


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


def housekeeping_dag(cluster: str, options: AirflowOptions) -> DAG:
    """Make the DAG that cleans the state_dir of one folder's connection, with the options that its streams share."""
    with declared_dag(
        cluster,
        housekeeping_id(cluster),
        f"Shows and removes what nobody needs in the state_dir of {cluster}",
        timedelta(days=1),
        options,
        tags=["housekeeping"],
        params={name: Param(**field) for name, field in FORM.items()},
        # The form's answers arrive with their types, not as text.
        render_template_as_native_obj=True,
        doc_md=__doc__,
    ) as dag:
        HousekeepingOperator(
            task_id="clean",
            cluster_conn_id=cluster,
            dry_run="{{ params.dry_run }}",
            older_than="{{ params.older_than }}",
            retries=2,
            retry_delay=timedelta(minutes=5),
        )
    return dag
