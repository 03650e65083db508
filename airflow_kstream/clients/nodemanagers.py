"""NodeManagers over REST: what still runs of an application on one node. Only they see processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from airflow_kstream.clients.http import REFUSALS, http_errors, kerberos_session, server_date
from airflow_kstream.clients.waiting import TimeLimits
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

_HEADERS = {"Accept": "application/json"}
# It answers from memory. One of a node that is frozen or cut off must not hold up the others.
_TO_ANSWER = TimeLimits(5.0, 10.0, 15.0)
# ApplicationImpl enters these when the ResourceManager has told it that the application is over.
_FINISHING = {"FINISHING_CONTAINERS_WAIT", "APPLICATION_RESOURCES_CLEANINGUP", "FINISHED"}
# The signs of a NodeManager's own 404, which a proxy's page lacks.
_UNKNOWN_APPLICATION = "not found"


@dataclass(frozen=True)
class NodeApplication:
    """An application on a node. `containers` are the ids of those that are not complete: ContainerImpl leaves
    ApplicationImpl only when its process is gone. `finishing` is False while the node still counts it as running."""

    containers: tuple[str, ...]
    finishing: bool


class NodeManager:
    """One NodeManager, asked as one identity. Any authenticated user may ask."""

    def __init__(self, address: str, identity: Identity, tls: Tls) -> None:
        self._address = address.rstrip("/")
        self._session = kerberos_session(identity, tls)
        self._identity = identity

    def application(self, application_id: str) -> NodeApplication | None:
        """Return what the node knows of the application; None if it knows none of this id."""
        tried = f"ask what runs of {application_id}"
        try:
            body, _ = self._json(tried, f"/ws/v1/node/apps/{application_id}")
        except NotFound as error:
            if _UNKNOWN_APPLICATION in error.message:
                return None
            raise
        with self._sense(tried):
            app = body["app"]
            containers = app.get("containerids") or ()
            listed = (containers,) if isinstance(containers, str) else tuple(map(str, containers))
            return NodeApplication(listed, finishing=app["state"] in _FINISHING)

    def uptime(self) -> timedelta:
        """Return the time since it started, by its own clock alone."""
        tried = "ask when it started"
        body, now = self._json(tried, "/ws/v1/node/info")
        with self._sense(tried):
            started = datetime.fromtimestamp(body["nodeInfo"]["nmStartupTime"] / 1000, UTC)
            return now - started

    def close(self) -> None:
        self._session.close()

    def _json(self, tried: str, path: str) -> tuple[Mapping[str, Any], datetime]:
        """Return the answer and its Date header."""
        with http_errors(tried, self._address, self._identity):
            # Three limits: this session's adapter reads the third.
            limits: Any = _TO_ANSWER
            answer = self._session.get(self._address + path, headers=_HEADERS, timeout=limits, allow_redirects=False)
        context = {"tried": tried, "server": self._address, "principal": str(self._identity)}
        if answer.status_code in REFUSALS:
            raise REFUSALS[answer.status_code](_message(answer), **context)
        if answer.status_code != 200:
            raise Unavailable(f"it answered {answer.status_code}", **context)
        with self._sense(tried):
            return answer.json(), server_date(answer)

    @contextmanager
    def _sense(self, tried: str) -> Iterator[None]:
        """Raises Unavailable: when the answer is not a NodeManager's, which proves nothing."""
        try:
            yield
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, OSError, RecursionError) as error:
            message = f"its answer makes no sense ({error!r})"
            raise Unavailable(message, tried=tried, server=self._address, principal=str(self._identity)) from error


def _message(answer: requests.Response) -> str:
    """Return the RemoteException's own words; those of HTTP say nothing about an application."""
    try:
        return str(answer.json()["RemoteException"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"it answered {answer.status_code} without a reason"
