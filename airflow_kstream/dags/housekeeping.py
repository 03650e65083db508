"""One DAG for each folder of streams, which shows daily what nobody needs any longer in the connection's `state_dir`.

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

from airflow_kstream.dags.factory import declared_dag
from airflow_kstream.dags.ids import housekeeping_id
from airflow_kstream.model.airflow_options import AirflowOptions
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
