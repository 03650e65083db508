"""One DAG for each declared cluster, which closes files that are stuck open: `<connection id>.yaml`.

The declarations lie in the folder that `[kstream] leases_folder` names in Airflow's configuration, on the DAG
processor and on every worker; there is no DAG without it.

A declaration names the folders and, if the defaults don't fit, how to handle them:

  paths: [/data/landing, /user/streams]      # required; one mapped task for each, one after the other
  patterns: ["*.in-progress", "*.avro.tmp"]  # all open files, if left out
  min_age: 10m
  leak_after: 1h
  allowed: ["/data/landing/*=orders"]        # PATTERN or PATTERN=APPLICATION (an id, or a stream's name)
  limits: default                            # or unlimited
  backend: native                            # or hdfs-debug
  dry_run: false
  every: 15m                                 # the schedule
  airflow: {queue: edge}                     # also pool, priority, owner, tags, executor_config, notify, callbacks

All but `every` and `airflow` are the defaults of the form with which a person starts a run by hand. Only there can a
person approve single files whose holder lives; the journal names the person who started the run as the approver. The
worker refuses paths that lie in none of the declared ones. A wrong declaration gets a DAG that fails and says why, and
harms no other.

By default it is not a dry run. By itself it closes only files that did not change between two scans and whose holder
the NameNode counts as dead. The NameNode would close those too, but an hour later or never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_kstream.assets import cluster_inlets
from airflow_kstream.dags.factory import dags_of_folder, declared_dag
from airflow_kstream.dags.ids import Family, is_made, leases_id
from airflow_kstream.model.airflow_options import require_no_templates
from airflow_kstream.model.forms import default_text, form_of
from airflow_kstream.model.leases.requests import LeaseDeclaration, RecoveryRequest
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator

# The form, in its order. The fields of a declaration replace its defaults.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Where": ("paths", "patterns"),
    "From when on": ("min_age", "leak_after"),
    "Files whose holder lives": ("allowed", "approve"),
    "How": ("limits", "per_datanode", "in_all", "deadline", "backend", "dry_run"),
}
FORM: Mapping[str, dict[str, Any]] = {
    name: form_of(RecoveryRequest if name == "approve" else LeaseDeclaration, name) | {"section": section}
    for section, names in _SECTIONS.items()
    for name in names
}
_LISTS = {name for name, field in FORM.items() if "array" in field["type"]}


def form(declaration: LeaseDeclaration) -> dict[str, Param]:
    declared = {name: default_text(getattr(declaration, name)) for name in FORM.keys() - {"approve"}}
    return {name: Param(**{**field, "default": declared.get(name, field["default"])}) for name, field in FORM.items()}


def lease_dag(cluster_conn_id: str, declaration: LeaseDeclaration) -> DAG:
    with declared_dag(
        cluster_conn_id,
        leases_id(cluster_conn_id),
        f"Closes files that are stuck open on {cluster_conn_id}",
        # One run at a time: two would measure and recover the same files.
        declaration.every,
        declaration.airflow,
        params=form(declaration),
        # Lists from the form arrive as lists.
        render_template_as_native_obj=True,
        doc_md=__doc__,
    ) as dag:

        @task
        def paths(params: Mapping[str, Any] | None = None) -> list[str]:
            return [path for path in params["paths"] if path] if params else []

        fields = {name: f"{{{{ params.{name} }}}}" for name in FORM.keys() - _LISTS - {"dry_run"}}
        lists = {name: f"{{{{ (params.{name} or []) | select | list }}}}" for name in _LISTS - {"paths"}}
        HdfsLeaseRecoverOperator.partial(
            task_id="recover",
            cluster_conn_id=cluster_conn_id,
            inlets=cluster_inlets(cluster_conn_id),
            map_index_template="{{ task.path }}",
            # They share the principal's record of earlier scans.
            max_active_tis_per_dagrun=1,
            # The person who starts a run chooses its params.
            within=declaration.paths,
            request=fields | lists,
            dry_run="{{ params.dry_run }}",
        ).expand(path=paths())
    return dag


def lease_dags(declaration: Path, text: str) -> Iterator[DAG]:
    fields = read_mapping(text)
    require_no_templates(fields)
    made = LeaseDeclaration.from_mapping(fields)
    if is_made(Family.LEASES):
        yield lease_dag(declaration.stem, made)


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids."""
    return dags_of_folder("leases", "*.yaml", lambda file: [leases_id(file.stem)], lease_dags)
