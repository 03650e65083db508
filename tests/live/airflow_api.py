"""What a person and a test do with a running Airflow over its REST API: runs, tasks, XCom, logs, buttons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from airflow_kstream.demo.airflow_api import AirflowApi
from airflow_kstream.demo.airflow_home import AirflowHome


@dataclass(frozen=True)
class TaskRef:
    """A reference to a task of a run; `map_index` is -1 for a task that is not mapped."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


@dataclass(frozen=True)
class TaskView:
    """A task instance at one moment, as the API shows it. `state` is None before it was ever scheduled."""

    ref: TaskRef
    state: str | None
    try_number: int
    trigger: str | None = None


@dataclass(frozen=True)
class ImportFailure:
    filename: str
    stack_trace: str


class LiveApi(AirflowApi):
    """The demonstration's client, with the requests that only tests send."""

    @classmethod
    def of(cls, home: AirflowHome) -> LiveApi:
        return cls(home.url, home.login)

    def import_errors(self) -> list[ImportFailure]:
        entries = self.call("GET", "/importErrors")["import_errors"]
        return [ImportFailure(entry["filename"], entry["stack_trace"]) for entry in entries]

    def create_variable(self, name: str, value: str) -> None:
        """Create a variable. Raises ConflictError: when one of that name exists."""
        self.call("POST", "/variables", json={"key": name, "value": value})

    def pause_dag(self, dag_id: str) -> None:
        self.call("PATCH", _dag(dag_id), json={"is_paused": True})

    def trigger_dag_run(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run and return its id. Raises Conflict: when a run of that id exists."""
        body = {"conf": dict(conf or {}), "logical_date": None} | ({"dag_run_id": run_id} if run_id else {})
        return str(self.call("POST", f"{_dag(dag_id)}/dagRuns", json=body)["dag_run_id"])

    def dag_run_state(self, dag_id: str, run_id: str) -> str:
        """Return queued, running, success or failed."""
        return str(self.call("GET", _run(dag_id, run_id))["state"])

    def dag_run_states(self, dag_id: str) -> dict[str, str]:
        """Return run id → state, the newest run first."""
        runs = self.call("GET", f"{_dag(dag_id)}/dagRuns", params={"order_by": "-run_after"})["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in runs}

    def task_instances(self, dag_id: str, run_id: str) -> list[TaskView]:
        entries = self.call("GET", f"{_run(dag_id, run_id)}/taskInstances")["task_instances"]
        return [_task_view(entry) for entry in entries]

    def task_instance(self, ref: TaskRef) -> TaskView:
        return _task_view(self.call("GET", _task(ref, mapped=True)))

    def xcom_entry(self, ref: TaskRef, key: str) -> Any:
        """Return the value as parsed JSON. Raises NotFound: when the task has not pushed it yet."""
        query = {"map_index": ref.map_index}
        return self.call("GET", f"{_task(ref)}/xcomEntries/{quote(key, safe='')}", params=query)["value"]

    def extra_links(self, ref: TaskRef) -> dict[str, str | None]:
        """Return button → address, None for a grey button."""
        answer = self.call("GET", f"{_task(ref)}/links", params={"map_index": ref.map_index})
        return dict(answer["extra_links"])

    def task_log(self, ref: TaskRef, try_number: int) -> str:
        """Return the log of one try, one line for each event and for each exception of a chain."""
        query = {"map_index": ref.map_index, "full_content": "true"}
        content = self.call("GET", f"{_task(ref)}/logs/{try_number}", params=query)["content"]
        return "\n".join(_log_lines(content))

    def clear(self, ref: TaskRef) -> None:
        """Clear the task as the button does: it starts again from `execute`."""
        selected: Sequence[str | tuple[str, int]] = [ref.task_id if ref.map_index < 0 else (ref.task_id, ref.map_index)]
        body = {"dry_run": False, "only_failed": False, "dag_run_id": ref.run_id, "task_ids": selected}
        self.call("POST", f"{_dag(ref.dag_id)}/clearTaskInstances", json=body)

    def mark(self, ref: TaskRef, state: str) -> None:
        """Mark the task "success", "failed" or "skipped" as a person would."""
        self.call("PATCH", _task(ref, mapped=True), json={"new_state": state})


def _dag(dag_id: str) -> str:
    return f"/dags/{quote(dag_id, safe='')}"


def _run(dag_id: str, run_id: str) -> str:
    return f"{_dag(dag_id)}/dagRuns/{quote(run_id, safe='')}"


def _task(ref: TaskRef, *, mapped: bool = False) -> str:
    """Return the path of a task, with the map index if the API expects it there and not as a parameter."""
    index = f"/{ref.map_index}" if mapped and ref.map_index >= 0 else ""
    return f"{_run(ref.dag_id, ref.run_id)}/taskInstances/{quote(ref.task_id, safe='')}{index}"


def _task_view(entry: Mapping[str, Any]) -> TaskView:
    ref = TaskRef(entry["dag_id"], entry["dag_run_id"], entry["task_id"], entry["map_index"])
    trigger = entry["trigger"]["classpath"] if entry.get("trigger") else None
    return TaskView(ref, entry["state"], entry["try_number"], trigger)


def _log_lines(content: Iterable[str | Mapping[str, Any]]) -> Iterator[str]:
    for line in content:
        if isinstance(line, str):
            yield line
        else:
            yield str(line.get("event", ""))
            yield from (f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or ())
