"""A thin client of Airflow's REST API v2, for an Airflow with the SimpleAuthManager.

It uses the API's terms and keeps no state but its token. It covers what a demonstration needs; it doesn't page through
long lists (it returns one page of at most 100 entries).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
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

    def health(self) -> dict[str, str | None]:
        """Return component → "healthy", "unhealthy" or None (never seen). Needs no login."""
        answer = self._send("GET", "/api/v2/monitor/health", {})
        return {name: part["status"] for name, part in answer.items() if part}

    def execution_health(self) -> dict[str, str | None]:
        """Return the same for the API that tasks use; a separate server has nothing else. Needs no login."""
        return {"execution_api": self._send("GET", "/execution/health", {})["status"]}

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
            self.call("POST", "/connections", json=body)
        except ConflictError:
            self.call("DELETE", f"/connections/{quote(connection.conn_id, safe='')}")
            self.call("POST", "/connections", json=body)

    def dag_ids(self) -> list[str]:
        return [dag["dag_id"] for dag in self.call("GET", "/dags")["dags"]]

    def unpause_dag(self, dag_id: str) -> None:
        self.call("PATCH", f"/dags/{quote(dag_id, safe='')}", json={"is_paused": False})

    def call(self, method: str, path: str, **request: Any) -> Any:
        """Return the answer to a request below /api/v2."""
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
            raise Unavailable("the answer is not JSON", **context) from error


def _detail(answer: requests.Response) -> str:
    """Extract the message of Airflow's `detail`: a sentence, an object, or a list of refused fields."""
    try:
        detail = answer.json().get("detail", "")
    except (requests.JSONDecodeError, AttributeError):
        return answer.reason or ""
    return detail if isinstance(detail, str) else json.dumps(detail)
