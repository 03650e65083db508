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
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, task
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from airflow_kstream.assets import cluster_inlets
from airflow_kstream.dags.factory import dags_of_folder, declared_dag
from airflow_kstream.dags.ids import leases_id
from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.airflow_options import options_of
from airflow_kstream.model.templates import require_no_templates
from airflow_kstream.model.yaml_text import read_mapping
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.supervise.leases.recover import Backend
from airflow_kstream.supervise.leases.requests import LimitsName, RecoveryRequest

_DURATION = r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$"
_WHERE, _WHEN, _LIVING, _HOW = "Where", "From when on", "Files whose holder lives", "How"
# The form sends an empty line as an empty text, and an empty field as null. A field that may be null has no star.
_TEXTS: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "string"}}
_PATH_OR_EMPTY_LINE = "^(/|$)"
_MOST_AT_ONCE = 1_000_000

# The form. The fields of a declaration replace its defaults.
FORM: Mapping[str, dict[str, Any]] = {
    "paths": {
        "default": [],
        "title": "Folders or files",
        "description": "Absolute HDFS paths, one a line: those of the declaration, or what lies in them.",
        "type": "array",
        "items": {"type": "string", "pattern": _PATH_OR_EMPTY_LINE},
        "section": _WHERE,
    },
    "patterns": {
        "default": [],
        "title": "Patterns",
        "description": "Shell patterns such as *.in-progress, one a line; one must match the file's name, or its whole "
        "path where the pattern has a slash. Leave it empty for all open files.",
        **_TEXTS,
        "section": _WHERE,
    },
    "min_age": {
        "default": "10m",
        "title": "Opened at least … ago",
        "description": "Younger files are left alone. Written like 90s, 15m, 6h or 1h30m.",
        "type": "string",
        "pattern": _DURATION,
        "section": _WHEN,
    },
    "leak_after": {
        "default": "1h",
        "title": "Unchanged for at least …, where the holder lives",
        "description": "A file whose holder lives counts as leaked when it was measured unchanged for this long.",
        "type": "string",
        "pattern": _DURATION,
        "section": _WHEN,
    },
    "allowed": {
        "default": [],
        "title": "Allowed once their application is finished",
        "description": "PATTERN or PATTERN=APPLICATION, one a line. The application is an id or a stream's name; "
        "without one, the application to which the file is attributed must be known to be finished.",
        **_TEXTS,
        "section": _LIVING,
    },
    "approve": {
        "default": [],
        "title": "Approved by you",
        "description": "Exact paths, one a line, in the declaration's, of leaked files to close although their holder "
        "lives. "
        "What their writers did not flush is lost. The journal names you.",
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": _PATH_OR_EMPTY_LINE},
        "section": _LIVING,
    },
    "limits": {
        "default": LimitsName.DEFAULT.value,
        "title": "Limits",
        "description": "default starts with low concurrency and adapts to the cluster; unlimited has no limit.",
        "type": "string",
        "enum": [name.value for name in LimitsName],
        "section": _HOW,
    },
    "per_datanode": {
        "default": None,
        "title": "At once on one DataNode",
        "description": "The most recoveries at once on one DataNode. Leave it empty for 512.",
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": _MOST_AT_ONCE,
        "section": _HOW,
    },
    "in_all": {
        "default": None,
        "title": "At once in all",
        "description": "The most recoveries at once on all DataNodes together. Leave it empty for 1000.",
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": _MOST_AT_ONCE,
        "section": _HOW,
    },
    "deadline": {
        "default": "15m",
        "title": "Deadline of a file",
        "description": "How long to wait for a file to close, from the first request on, before it is given up.",
        "type": "string",
        "pattern": _DURATION,
        "section": _HOW,
    },
    "backend": {
        "default": Backend.NATIVE.value,
        "title": "Backend",
        "description": "native asks for many files over one connection; hdfs-debug runs hdfs debug recoverLease, "
        "a JVM of some seconds for each file, on a worker that has a Hadoop client.",
        "type": "string",
        "enum": [backend.value for backend in Backend],
        "section": _HOW,
    },
    "dry_run": {
        "default": False,
        "title": "Dry run",
        "description": "Scan, say what would be done, and touch no lease.",
        "type": "boolean",
        "section": _HOW,
    },
}
_DECLARED = {*FORM, "every", "airflow"} - {"approve"}
# Airflow checks each whenever it reads this file, for which it has 30 s.
_MOST_PATHS = 1000
_LISTS = {name for name, field in FORM.items() if "array" in field["type"]}


def declared(text: str) -> dict[str, Any]:
    """Return the declaration. Raises InvalidInput: when any of it is wrong."""
    declaration = read_mapping(text)
    if not declaration.get("paths"):
        raise InvalidInput("it names no paths")
    unknown = sorted({str(name) for name in declaration} - _DECLARED)
    if unknown:
        raise InvalidInput(f"{', '.join(unknown)}; known are {', '.join(sorted(_DECLARED))}")
    try:
        ParamsDict(form(declaration)).validate()
    except ParamValidationError as error:
        raise InvalidInput(str(error).splitlines()[0]) from error
    empty = sorted(name for name in _LISTS & declaration.keys() if "" in (declaration[name] or ()))
    if empty:
        raise InvalidInput(f"{', '.join(empty)}: '' does not match anything")
    if not timedelta(seconds=10) <= every(declaration) <= timedelta(days=366):
        raise InvalidInput(f"every is {declaration['every']!r}; allowed is 10s to 366d")
    if len(declaration["paths"]) > _MOST_PATHS:
        raise InvalidInput(f"paths has {len(declaration['paths'])} entries; allowed are {_MOST_PATHS}")
    fields = {name: value for name, value in declaration.items() if name not in {"paths", "every", "airflow"}}
    options_of(declaration)
    require_no_templates(declaration)
    for path in declaration["paths"]:
        RecoveryRequest.from_mapping({**fields, "path": path}).settings()
    return declaration


def every(declaration: Mapping[str, Any]) -> timedelta:
    return parse_duration(str(declaration.get("every", "15m")))


def form(declaration: Mapping[str, Any]) -> dict[str, Param]:
    return {
        name: Param(**{**field, "default": declaration.get(name, field["default"])}) for name, field in FORM.items()
    }


def lease_dag(cluster_conn_id: str, declaration: Mapping[str, Any]) -> DAG:
    with declared_dag(
        cluster_conn_id,
        leases_id(cluster_conn_id),
        f"Closes files that are stuck open on {cluster_conn_id}",
        # One run at a time: two would measure and recover the same files.
        every(declaration),
        options_of(declaration),
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
            within=declaration["paths"],
            request=fields | lists,
            dry_run="{{ params.dry_run }}",
        ).expand(path=paths())
    return dag


def lease_dags(declaration: Path, text: str) -> Iterator[DAG]:
    yield lease_dag(declaration.stem, declared(text))


def declared_dags() -> dict[str, DAG]:
    """Make the DAGs of all declarations, by their ids."""
    return dags_of_folder("leases", "*.yaml", lambda file: [leases_id(file.stem)], lease_dags)
