"""A thin client of Airflow's REST API v2, for an Airflow with the SimpleAuthManager.

It uses the API's terms and keeps no state but its token. It covers what a demonstration and its tests need; it doesn't
page through long lists (it returns one page of at most 100 entries).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import requests

from airflow_kstream.model.errors import Conflict as ConflictError
from airflow_kstream.model.errors import CredentialError, Denied, InvalidInput, KstreamError, NotFound, Unavailable

_TIMEOUT = (3.0, 20.0)  # seconds to connect, to read
_ERRORS: dict[int, type[KstreamError]] = {
    400: InvalidInput,
    401: CredentialError,
    403: Denied,
    404: NotFound,
    405: InvalidInput,
    409: ConflictError,
    422: InvalidInput,
}


@dataclass(frozen=True)
class Login:
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Connection:
    """A connection as Airflow stores it; put secrets into `password`, the only field that Airflow always masks."""

    conn_id: str
    conn_type: str
    description: str = ""
    host: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


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


class AirflowApi:
    """A client with one server and one login. Safe to use from several threads.

    Every method raises Unavailable: when the server doesn't answer or fails. Likewise CredentialError for a wrong
    login, Denied for a missing permission, NotFound, Conflict, or InvalidInput for a request that Airflow refuses.
    """

    def __init__(self, base_url: str, login: Login) -> None:
        self.base_url = base_url.rstrip("/")
        self._login = login
        self._lock = threading.Lock()
        self._token: str | None = None
        self._session = requests.Session()
        # No proxy and no .netrc of the caller: the server is on this machine.
        self._session.trust_env = False

    def close(self) -> None:
        self._session.close()

    # --- the installation

    def health(self) -> dict[str, str | None]:
        """Return component → "healthy", "unhealthy" or None (never seen). Needs no login."""
        answer = self._send("GET", "/api/v2/monitor/health", {})
        return {name: part["status"] for name, part in answer.items() if part}

    def execution_health(self) -> dict[str, str | None]:
        """Return the same for the API that tasks use; a separate server has nothing else. Needs no login."""
        return {"execution_api": self._send("GET", "/execution/health", {})["status"]}

    def import_errors(self) -> list[ImportFailure]:
        entries = self._call("GET", "/importErrors")["import_errors"]
        return [ImportFailure(entry["filename"], entry["stack_trace"]) for entry in entries]

    def put_connection(self, connection: Connection) -> None:
        """Create the connection, or replace the one of that id."""
        body = {
            "connection_id": connection.conn_id,
            "conn_type": connection.conn_type,
            "description": connection.description,
            "host": connection.host,
            "password": connection.password,
            "extra": json.dumps(dict(connection.extra)),
        }
        try:
            self._call("POST", "/connections", json=body)
        except ConflictError:
            self._call("DELETE", f"/connections/{quote(connection.conn_id, safe='')}")
            self._call("POST", "/connections", json=body)

    def create_variable(self, name: str, value: str) -> None:
        """Create a variable. Raises ConflictError: when one of that name exists."""
        self._call("POST", "/variables", json={"key": name, "value": value})

    # --- DAGs and runs

    def dag_ids(self) -> list[str]:
        return [dag["dag_id"] for dag in self._call("GET", "/dags")["dags"]]

    def unpause_dag(self, dag_id: str) -> None:
        self._call("PATCH", _dag(dag_id), json={"is_paused": False})

    def pause_dag(self, dag_id: str) -> None:
        self._call("PATCH", _dag(dag_id), json={"is_paused": True})

    def trigger_dag_run(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run and return its id. Raises Conflict: when a run of that id exists."""
        body = {"conf": dict(conf or {}), "logical_date": None} | ({"dag_run_id": run_id} if run_id else {})
        return str(self._call("POST", f"{_dag(dag_id)}/dagRuns", json=body)["dag_run_id"])

    def dag_run_state(self, dag_id: str, run_id: str) -> str:
        """Return queued, running, success or failed."""
        return str(self._call("GET", _run(dag_id, run_id))["state"])

    def dag_run_states(self, dag_id: str) -> dict[str, str]:
        """Return run id → state, the newest run first."""
        runs = self._call("GET", f"{_dag(dag_id)}/dagRuns", params={"order_by": "-run_after"})["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in runs}

    # --- task instances

    def task_instances(self, dag_id: str, run_id: str) -> list[TaskView]:
        entries = self._call("GET", f"{_run(dag_id, run_id)}/taskInstances")["task_instances"]
        return [_task_view(entry) for entry in entries]

    def task_instance(self, ref: TaskRef) -> TaskView:
        return _task_view(self._call("GET", _task(ref, mapped=True)))

    def xcom_entry(self, ref: TaskRef, key: str) -> Any:
        """Return the value as parsed JSON. Raises NotFound: when the task has not pushed it yet."""
        query = {"map_index": ref.map_index}
        return self._call("GET", f"{_task(ref)}/xcomEntries/{quote(key, safe='')}", params=query)["value"]

    def extra_links(self, ref: TaskRef) -> dict[str, str | None]:
        """Return button → address, None for a grey button."""
        answer = self._call("GET", f"{_task(ref)}/links", params={"map_index": ref.map_index})
        return dict(answer["extra_links"])

    def task_log(self, ref: TaskRef, try_number: int) -> str:
        """Return the log of one try, one line for each event and for each exception of a chain."""
        query = {"map_index": ref.map_index, "full_content": "true"}
        content = self._call("GET", f"{_task(ref)}/logs/{try_number}", params=query)["content"]
        return "\n".join(_log_lines(content))

    def clear(self, ref: TaskRef) -> None:
        """Clear the task as the button does: it starts again from `execute`."""
        selected: Sequence[str | tuple[str, int]] = [ref.task_id if ref.map_index < 0 else (ref.task_id, ref.map_index)]
        body = {"dry_run": False, "only_failed": False, "dag_run_id": ref.run_id, "task_ids": selected}
        self._call("POST", f"{_dag(ref.dag_id)}/clearTaskInstances", json=body)

    def mark(self, ref: TaskRef, state: str) -> None:
        """Mark the task "success", "failed" or "skipped" as a person would."""
        self._call("PATCH", _task(ref, mapped=True), json={"new_state": state})

    def ask(self, path: str) -> Any:
        """Return the answer to a GET of this path below /api/v2."""
        return self._call("GET", path)

    # --- requests

    def _call(self, method: str, path: str, **request: Any) -> Any:
        try:
            return self._send(method, f"/api/v2{path}", self._authorization(), **request)
        except CredentialError:
            # The token expired, or the server came back with other secrets: log in once more, then give up.
            with self._lock:
                self._token = None
            return self._send(method, f"/api/v2{path}", self._authorization(), **request)

    def _authorization(self) -> dict[str, str]:
        with self._lock:
            if self._token is None:
                body = {"username": self._login.username, "password": self._login.password}
                self._token = self._send("POST", "/auth/token", {}, json=body)["access_token"]
            return {"Authorization": f"Bearer {self._token}"}

    def _send(self, method: str, path: str, headers: Mapping[str, str], **request: Any) -> Any:
        context = {"tried": f"{method} {path}", "server": self.base_url, "principal": self._login.username}
        try:
            answer = self._session.request(
                method, self.base_url + path, headers=dict(headers), timeout=_TIMEOUT, **request
            )
        except requests.RequestException as error:
            raise Unavailable(f"no answer ({type(error).__name__})", **context) from error
        if not answer.ok:
            raise _ERRORS.get(answer.status_code, Unavailable)(f"{answer.status_code} {_detail(answer)}", **context)
        if not answer.content:
            return None
        try:
            return answer.json()
        except requests.JSONDecodeError as error:
            raise Unavailable("the answer is no JSON", **context) from error


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


def _detail(answer: requests.Response) -> str:
    """Extract the message of Airflow's `detail`: a sentence, an object, or a list of refused fields."""
    try:
        detail = answer.json().get("detail", "")
    except (requests.JSONDecodeError, AttributeError):
        return answer.reason or ""
    return detail if isinstance(detail, str) else json.dumps(detail)


def _log_lines(content: Iterable[str | Mapping[str, Any]]) -> Iterator[str]:
    for line in content:
        if isinstance(line, str):
            yield line
        else:
            yield str(line.get("event", ""))
            yield from (f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or ())
