"""One ResourceManager over REST: SPNEGO, JSON or nothing, and its refusals as our errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import requests

from airflow_kstream.clients.http import http_errors, kerberos_session, senseless, server_date
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS, TimeLimits
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

T = TypeVar("T")

_HEADERS = {"Accept": "application/json", "X-XSRF-Header": "kstream"}
# Of a refusal that is text alone.
_LONGEST_TEXT = 300
# An ACTIVE one answers this from memory. One that is frozen must not hold up the others for longer.
_TO_INTRODUCE_ITSELF = TimeLimits(5.0, 10.0, 10.0)


class NoSuchPage(Unavailable):
    """The answer of a server, or of a proxy, that has no such page: what YARN does not know, it says as itself."""


@dataclass(frozen=True)
class ClusterInfo:
    """A ResourceManager's word about itself. Its times are its own clock's.

    `started` is when an ACTIVE one became active (ResourceManager.startActiveServices sets the cluster timestamp,
    also at a failover), and when the process of any other one started. `age` is the time since then; None if its
    answer has no Date.
    """

    address: str
    ha_state: str
    version: str
    started: datetime
    age: timedelta | None = None

    @property
    def active(self) -> bool:
        """Return True if it has recovered its applications and serves: it reports ACTIVE only after that."""
        return self.ha_state == "ACTIVE"

    @property
    def term(self) -> tuple[str, datetime]:
        """Identify the time in which it is active without a break."""
        return self.address, self.started


class YarnServer:
    """A ResourceManager, active or not, as one identity. Not safe for several threads at once.

    Raises Unavailable: when its answer is not YARN's JSON. A page of a proxy proves nothing about any application.
    Raises NotFound: when YARN itself says so.
    """

    def __init__(self, address: str, identity: Identity, tls: Tls) -> None:
        self.address = address
        self._identity = identity
        self._session = kerberos_session(identity, tls)
        self.asks_who = False
        """Whether it ever demanded a proof of who we are; False before the first answer."""

    def info(self) -> ClusterInfo:
        """Return its information about itself; a standby answers this too."""
        tried = "ask the ResourceManager who it is"
        answer = self._request(tried, "GET", "/ws/v1/cluster/info", timeout=_TO_INTRODUCE_ITSELF)
        return self._understood(tried, answer, lambda body: _introduced(self.address, body, _date(answer)))

    def ask(
        self, tried: str, method: str, path: str, understand: Callable[[Mapping[str, Any]], T], **options: Any
    ) -> T:
        """Send a request, and return what `understand` makes of the JSON object in the answer; of none, an empty one.

        Raises Unavailable: when it can make nothing of it: a proxy's or another version's answer proves nothing.
        """
        return self._understood(tried, self._request(tried, method, path, **options), understand)

    def unavailable(self, tried: str, message: str) -> Unavailable:
        return Unavailable(message, tried=tried, server=self.address, principal=str(self._identity))

    def close(self) -> None:
        self._session.close()

    def _request(self, tried: str, method: str, path: str, **options: Any) -> requests.Response:
        options.setdefault("timeout", CONNECT_AND_READ_SECONDS)
        with http_errors(tried, self.address, self._identity):
            # A standby redirects, and with no active one the redirect leads nowhere: we choose the server.
            answer = self._session.request(
                method, self.address + path, headers=_HEADERS, allow_redirects=False, **options
            )
        # A proof is demanded once, and then remembered in a cookie.
        self.asks_who = (
            self.asks_who or answer.status_code == 401 or any(one.status_code == 401 for one in answer.history)
        )
        return answer

    def _understood(self, tried: str, answer: requests.Response, understand: Callable[[Mapping[str, Any]], T]) -> T:
        body = self._body(tried, answer)
        try:
            return understand(body)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, OSError) as error:
            raise self.unavailable(tried, f"its answer makes no sense ({error!r})") from error

    def _body(self, tried: str, answer: requests.Response) -> Mapping[str, Any]:
        context = {"tried": tried, "server": self.address, "principal": str(self._identity)}
        if answer.status_code in {401, 403}:
            raise Denied(f"it answered {answer.status_code}: {_message(answer)}", **context)
        if answer.status_code == 404 and _remote_exception(answer):
            raise NotFound(_message(answer), **context)
        if answer.status_code == 404:
            raise NoSuchPage(f"it answered 404: {_message(answer)}", **context)
        if answer.status_code not in {200, 202}:
            raise Unavailable(f"it answered {answer.status_code}: {_message(answer)}", **context)
        if not answer.content:
            return {}
        if "json" not in answer.headers.get("Content-Type", ""):
            why = f"{answer.headers.get('Content-Type')}, not JSON"
            raise Unavailable(senseless(answer, why), **context)
        return _mapping(answer, context)


def _introduced(address: str, body: Mapping[str, Any], date: datetime | None) -> ClusterInfo:
    info = body["clusterInfo"]
    started = datetime.fromtimestamp(info["startedOn"] / 1000, UTC)
    age = date - started if date else None
    return ClusterInfo(address, str(info["haState"]), str(info["hadoopVersion"]), started, age)


def _mapping(answer: requests.Response, context: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        body = answer.json()
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"its JSON makes no sense ({type(error).__name__})", **context) from None
    if not isinstance(body, Mapping):
        raise Unavailable(f"its answer makes no sense (a {type(body).__name__} and no object)", **context)
    return body


def _message(answer: requests.Response) -> str:
    """Return YARN's own words, or the reason in the answer's first line.

    Some refusals are text alone, such as that of an older RMWebServices to its static user.
    """
    text = "" if "html" in answer.headers.get("Content-Type", "") else answer.text[:_LONGEST_TEXT]
    words = str(_remote_exception(answer).get("message", text)).splitlines()
    return words[0] if words else answer.reason or "no reason given"


def _remote_exception(answer: requests.Response) -> Mapping[str, Any]:
    """Return the Java exception that YARN reports; empty if the answer is somebody else's."""
    try:
        exception = answer.json()["RemoteException"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return exception if isinstance(exception, Mapping) else {}


def _date(answer: requests.Response) -> datetime | None:
    try:
        return server_date(answer)
    except (ValueError, OverflowError):
        return None
