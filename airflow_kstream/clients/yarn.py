"""The ResourceManager over REST: SPNEGO, client-side HA, and verified kills."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from airflow_kstream.clients.http import CONNECT_AND_READ_SECONDS, http_errors, kerberos_session
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.application import Application
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.identity import Identity

_HEADERS = {"Accept": "application/json", "X-XSRF-Header": "kstream"}
_LEAVE_OUT = "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
_KILL_EVERY = timedelta(seconds=0.5)
_counter = itertools.count()
_REFUSALS: Mapping[int, type[KstreamError]] = {401: Denied, 403: Denied, 404: NotFound}


@dataclass(frozen=True)
class ClusterInfo:
    """A ResourceManager. `started` distinguishes its incarnations; application ids carry it as cluster timestamp."""

    address: str
    ha_state: str
    version: str
    started: datetime


class ResourceManager:
    """All ResourceManagers of one cluster as one, with one identity. Not safe for several threads at once.

    Raises Unavailable: when the ACTIVE one's answer is not JSON. That proves nothing about any application.
    """

    def __init__(self, addresses: tuple[str, ...], identity: Identity, tls: Tls) -> None:
        self._sessions = {address.rstrip("/"): kerberos_session(identity, tls) for address in addresses}
        self._identity = identity
        self._active: str | None = None

    def info(self, address: str) -> ClusterInfo:
        """Return one ResourceManager's information about itself; a standby answers this too."""
        tried = "ask the ResourceManager who it is"
        body = self._json(tried, address, "GET", "/ws/v1/cluster/info")
        with self._sense(tried, address):
            info = body["clusterInfo"]
            started = datetime.fromtimestamp(info["startedOn"] / 1000, UTC)
            return ClusterInfo(address, info["haState"], info["hadoopVersion"], started)

    def active(self) -> str:
        """Return the address of the ACTIVE one. Raises Unavailable: when none of them reports as ACTIVE."""
        if self._active is None:
            self._active = self._find_active()
        return self._active

    def applications(self, tag: str) -> tuple[Application, ...]:
        """Return all applications with this tag that the ResourceManager still lists, alive and ended.

        A missing one is not proven to have ended: only the last thousand are kept in memory.
        """
        # Hadoop 3.4's optional cache of this call keeps an answer for 30 s; a varying limit bypasses it.
        params = {"applicationTags": tag, "deSelects": _LEAVE_OUT, "limit": 100_000 + next(_counter)}
        tried = f"list applications tagged {tag}"
        body = self._call(tried, "GET", "/ws/v1/cluster/apps", params=params)
        with self._sense(tried):
            return tuple(Application.from_json(app) for app in (body.get("apps") or {}).get("app", []))

    def application(self, application_id: str) -> Application:
        body = self._call(f"read {application_id}", "GET", f"/ws/v1/cluster/apps/{application_id}")
        with self._sense(f"read {application_id}"):
            return Application.from_json(body["app"])

    def time_left(self, application_id: str) -> timedelta | None:
        """Return the time that YARN's lifetime limit leaves the application; None if there is no limit."""
        path = f"/ws/v1/cluster/apps/{application_id}/timeouts/LIFETIME"
        tried = f"read the lifetime limit of {application_id}"
        body = self._call(tried, "GET", path)
        with self._sense(tried):
            seconds = int(body.get("timeout", {}).get("remainingTimeInSeconds", -1))
        return None if seconds < 0 else timedelta(seconds=seconds)

    def am_container(self, application_id: str) -> str | None:
        """Return the container of the newest application attempt: the driver's, in cluster mode."""
        path = f"/ws/v1/cluster/apps/{application_id}/appattempts"
        tried = f"read the attempts of {application_id}"
        body = self._call(tried, "GET", path)
        with self._sense(tried):
            attempts = (body.get("appAttempts") or {}).get("appAttempt", [])
            newest = max(attempts, key=lambda attempt: int(attempt["id"]), default=None)
        return str(newest["containerId"]) if newest and newest.get("containerId") else None

    def signal_driver(self, application_id: str) -> bool:
        """Send SIGTERM to the driver's container; return False if there is none."""
        container = self.am_container(application_id)
        if container is None:
            return False
        path = f"/ws/v1/cluster/containers/{container}/signal/GRACEFUL_SHUTDOWN"
        self._call(f"send SIGTERM to the driver of {application_id}", "POST", path)
        return True

    def kill(self, application_id: str, diagnostics: str, wait: timedelta) -> Application:
        """Kill the application, and return it once the ResourceManager reports its end. Idempotent.

        Raises Denied: when this identity may not. Raises Unavailable: when it has not ended after `wait`.
        """
        tried, path = f"kill {application_id}", f"/ws/v1/cluster/apps/{application_id}/state"
        body = {"state": "KILLED", "diagnostics": diagnostics}

        def kill() -> Application | None:
            self._call(tried, "PUT", path, json=body)
            app = self.application(application_id)
            return None if app.alive else app

        ended = until(kill, _KILL_EVERY, wait)
        if ended is None:
            raise self._unavailable(tried, f"it is still {self.application(application_id).state}", self.active())
        return ended

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _find_active(self) -> str:
        answers = []
        for address in self._sessions:
            try:
                state = self.info(address).ha_state
            except Unavailable as error:
                answers.append(f"{address}: {error.message}")
                continue
            if state == "ACTIVE":
                return address
            answers.append(f"{address}: {state}")
        raise self._unavailable("find the active ResourceManager", "none is active: " + "; ".join(answers), "")

    def _call(self, tried: str, method: str, path: str, **kwargs: Any) -> Mapping[str, Any]:
        """Send a request to the active one; if that fails, look up once more which one is active."""
        if self._identity.do_as:
            kwargs["params"] = {**kwargs.get("params", {}), "doAs": self._identity.do_as}
        active_before = self._active
        try:
            return self._json(tried, self.active(), method, path, **kwargs)
        except Unavailable:
            self._active = None
            if active_before is None or len(self._sessions) == 1:
                raise
            return self._json(tried, self.active(), method, path, **kwargs)

    def _json(self, tried: str, address: str, method: str, path: str, **kwargs: Any) -> Mapping[str, Any]:
        with http_errors(tried, address, self._identity):
            # A standby redirects, and with no active one the redirect leads nowhere: we choose the server.
            answer = self._sessions[address].request(
                method,
                address + path,
                headers=_HEADERS,
                timeout=CONNECT_AND_READ_SECONDS,
                allow_redirects=False,
                **kwargs,
            )
            return self._understood(tried, address, answer)

    def _understood(self, tried: str, address: str, answer: requests.Response) -> Mapping[str, Any]:
        context = {"tried": tried, "server": address, "principal": str(self._identity)}
        if answer.status_code in _REFUSALS:
            raise _REFUSALS[answer.status_code](_message(answer), **context)
        if answer.status_code not in {200, 202}:
            raise Unavailable(f"it answered {answer.status_code}: {_message(answer)}", **context)
        if not answer.content:
            return {}
        if "json" not in answer.headers.get("Content-Type", ""):
            raise Unavailable(f"it answered {answer.headers.get('Content-Type')}, not JSON", **context)
        return _mapping(answer, context)

    @contextmanager
    def _sense(self, tried: str, server: str = "") -> Iterator[None]:
        """Raises Unavailable: when the JSON is not YARN's: a proxy's or another version's answer proves nothing."""
        try:
            yield
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, OSError) as error:
            raise self._unavailable(tried, f"its answer makes no sense ({error!r})", server or self.active()) from error

    def _unavailable(self, tried: str, message: str, server: str) -> Unavailable:
        return Unavailable(message, tried=tried, server=server, principal=str(self._identity))


def _mapping(answer: requests.Response, context: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        body = answer.json()
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"its JSON makes no sense ({type(error).__name__})", **context) from None
    if not isinstance(body, Mapping):
        raise Unavailable(f"its answer makes no sense (a {type(body).__name__} and no object)", **context)
    return body


def _message(answer: requests.Response) -> str:
    """Return the RemoteException's own words, or the start of the answer."""
    try:
        return str(answer.json()["RemoteException"]["message"]).splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return answer.reason or "no reason given"
