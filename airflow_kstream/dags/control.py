"""One DAG for each folder of declarations, whose form lets a person start, stop, restart or hold its streams.

`control-<cluster connection id>` has no schedule and is not paused: a person who may trigger it, as Airflow's own roles
say, may control the folder's streams. Each order carries that name and a reason. The form offers the streams that
have a file in the folder; the worker refuses any other. It can freeze all streams of the connection's `state_dir`, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param

from airflow_kstream.dags.factory import task_arguments
from airflow_kstream.dags.ids import control_id
from airflow_kstream.model.airflow_options import AirflowOptions
from airflow_kstream.operators.stream_control import FRESH, OF_THE_CLUSTER, Action, StreamControlOperator

_ACTIONS: Mapping[Action, str] = {
    Action.START: "start: let it run again",
    Action.STOP: "stop: end it after its batch, and leave it stopped",
    Action.RESTART: "restart: replace the running generation",
    Action.HOLD: "hold: let nobody start, stop or restart it",
    Action.FREEZE: "freeze: hold every stream of the cluster for a while",
    Action.UNFREEZE: "unfreeze: lift the freeze",
}


def form(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the fields of the form; a run by hand can name no other stream than these."""
    return {
        "action": {
            "default": Action.HOLD,
            "title": "Action",
            "type": "string",
            "enum": [*Action],
            "values_display": {str(action): words for action, words in _ACTIONS.items()},
        },
        "stream": {
            "default": None,
            "title": "Stream",
            "description": f"Not for {' and '.join(sorted(OF_THE_CLUSTER))}, which concern them all.",
            "type": ["null", "string"],
            "enum": [None, *sorted(names)],
        },
        "reason": {
            "default": None,
            "title": "Reason",
            "description": "Every supervisor shows it beside your name.",
            "type": "string",
            "minLength": 3,
            "maxLength": 300,
        },
        "begins": {
            "default": None,
            "title": "Begin with",
            "description": "Only for start, of a stream whose engine has to know: empty for where it was left, "
            f"{FRESH} for no state at all, or the HDFS path of a state.",
            "type": ["null", "string"],
            "pattern": rf"^({FRESH}|(hdfs:/)?/.+)$",
        },
        "lasts": {
            "default": "4h",
            "title": "Freeze for",
            "description": "From now on, at most 7d. Only for freeze.",
            "type": "string",
            "pattern": r"^(\d+(\.\d+)?(ms|s|m|h|d|w))+$",
        },
    }


def control_dag(cluster: str, names: Iterable[str], options: AirflowOptions) -> DAG:
    """Make the DAG that controls the streams of one folder. `options` are those that its declarations share."""
    streams = sorted(names)
    with DAG(
        dag_id=control_id(cluster),
        description=f"Start, stop, restart or hold a stream of {cluster}",
        doc_md=__doc__,
        schedule=None,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        is_paused_upon_creation=False,
        auto_register=False,
        params={name: Param(**field) for name, field in form(streams).items()},
        default_args=task_arguments(options, cluster),
        tags=["kstream", "control", *options.tags],
    ) as dag:
        StreamControlOperator(
            task_id="control",
            cluster_conn_id=cluster,
            action="{{ params.action }}",
            stream="{{ params.stream or '' }}",
            reason="{{ params.reason }}",
            lasts="{{ params.lasts }}",
            begins="{{ params.begins or '' }}",
            streams=streams,
        )
    return dag
