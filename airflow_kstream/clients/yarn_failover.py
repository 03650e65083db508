"""Which ResourceManager of a cluster is the active one, and how far the word of one alone goes.

What Hadoop does (3.4.3, ResourceManager and ActiveStandbyElectorBasedElectorService): one becomes active by setting
its `startedOn`, loading and recovering all stored applications, and only then reports ACTIVE. Its web server answers
before that, with an empty list. One that was frozen, or cut off from ZooKeeper, goes on reporting ACTIVE until it
learns that its session is gone: at most `yarn.resourcemanager.zk-timeout-ms` (10 s) after it runs again. Meanwhile it
lacks whatever was submitted to the other. It can't report an end that nobody stored, for the store refuses its
writes. So what it says of an application that it has can be believed, and what it says of a missing one can't.

`YarnServer` is one ResourceManager over REST: SPNEGO, JSON or nothing, and its refusals as our errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import requests

from airflow_kstream.clients.http import (
    http_errors,
    kerberos_session,
    kind_of_all,
    senseless,
    server_date,
    words_of_all,
)
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS, TimeLimits
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
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


_FIND = "find the active ResourceManager"
_Term = tuple[str, datetime]


@dataclass(frozen=True)
class _Introductions:
    """The words of all ResourceManagers about themselves at one moment, and the reasons why the rest said nothing."""

    infos: tuple[ClusterInfo, ...]
    errors: tuple[KstreamError, ...]

    @property
    def active(self) -> tuple[ClusterInfo, ...]:
        return tuple(info for info in self.infos if info.active)

    def __str__(self) -> str:
        said = [f"{info.address}: {info.ha_state}" for info in self.infos]
        return "; ".join([*said, *([words_of_all(self.errors)] if self.errors else [])])


class ActiveResourceManager:
    """All ResourceManagers of one cluster, and the one among them that is active. Not safe for several threads."""

    def __init__(self, addresses: Collection[str], identity: Identity, tls: Tls) -> None:
        self._servers = {url: YarnServer(url, identity, tls) for url in (address.rstrip("/") for address in addresses)}
        self._identity = identity
        self._active: ClusterInfo | None = None
        # By the monotonic clock: when each term of office was first noticed, and since when something is missing in it.
        self._met: dict[_Term, float] = {}
        self._missing: dict[str, tuple[_Term, float]] = {}

    @property
    def known(self) -> bool:
        """Return True if `server` needs no request."""
        return self._active is not None

    def info(self, address: str) -> ClusterInfo:
        return self._servers[address.rstrip("/")].info()

    def server(self) -> YarnServer:
        """Return the active one, as found earlier or now.

        Raises Unavailable: when none, or more than one, reports as ACTIVE. Raises the error that all of them answer,
        if it is a lasting one, with each server's words.
        """
        self._active = self._active or self._the_only(self._ask_all())
        return self._servers[self._active.address]

    def forget(self) -> None:
        """Look for the active one again at the next request."""
        self._active = None

    def confirm_absence(self, of: str, age: timedelta, settled: timedelta) -> None:
        """Make sure that the last answer, which lacked `of`, was the cluster's. All ResourceManagers are asked.

        `age` is how long ago it may have been submitted. Raises Unavailable: when the active one is not, or no longer,
        the one that answered; when it became active after that submission and less than `settled` ago, by its own clock
        and by ours; and, when another one can't be asked, until `of` has been missing for `settled`, by our clock, in
        one term of one that alone says ACTIVE.
        """
        answered = self._active
        asked = self._ask_all()
        self._active = now = self._the_only(asked)
        doubt = self._doubt(answered, now, age, settled)
        if not doubt and asked.errors and self._missing_for(of, now) < settled:
            doubt = (
                f"another ResourceManager can't be asked ({words_of_all(asked.errors)}); what this one lacks "
                f"counts as gone once it has been missing for {format_duration(settled)}"
            )
        if doubt:
            raise self._servers[now.address].unavailable(f"make sure that {of} is gone", doubt)

    def found(self, names: Collection[str]) -> None:
        """Take note that these are not missing."""
        for name in self._missing.keys() & set(names):
            del self._missing[name]

    def close(self) -> None:
        for server in self._servers.values():
            server.close()

    def _ask_all(self) -> _Introductions:
        if len(self._servers) == 1:
            answers = [_introduction(server) for server in self._servers.values()]
        else:
            with ThreadPoolExecutor(len(self._servers)) as threads:
                answers = list(threads.map(_introduction, self._servers.values()))
        return _Introductions(
            tuple(answer for answer in answers if isinstance(answer, ClusterInfo)),
            tuple(answer for answer in answers if isinstance(answer, KstreamError)),
        )

    def _the_only(self, asked: _Introductions) -> ClusterInfo:
        match asked.active:
            case (active,):
                self._met.setdefault(active.term, time.monotonic())
                return active
            case ():
                raise self._none_active(asked)
        self._missing.clear()
        both = " and ".join(info.address for info in asked.active)
        message = f"{both} say that they are ACTIVE; one of them was frozen or cut off, and learns it within seconds"
        raise self._error(Unavailable, message)

    def _none_active(self, asked: _Introductions) -> KstreamError:
        self._missing.clear()
        kind = Unavailable if asked.infos else kind_of_all(asked.errors)
        return self._error(kind, f"none is active: {asked}")

    def _error(self, kind: type[KstreamError], message: str) -> KstreamError:
        return kind(message, tried=_FIND, principal=str(self._identity))

    def _doubt(self, answered: ClusterInfo | None, now: ClusterInfo, age: timedelta, settled: timedelta) -> str:
        if answered is None or answered.term != now.term:
            return "it has become the active one only now"
        # By one clock at a time: its own, and ours, which ends the wait even if its clock is set back.
        active_for = max(now.age or timedelta(), self._since(self._met[now.term]))
        if active_for < settled and active_for <= age:
            ago = format_duration(active_for)
            return f"it became active {ago} ago and may not have recovered its applications yet"
        return ""

    def _missing_for(self, of: str, now: ClusterInfo) -> timedelta:
        term, first = self._missing.get(of, (now.term, time.monotonic()))
        if term != now.term:
            first = time.monotonic()
        self._missing[of] = (now.term, first)
        return self._since(first)

    @staticmethod
    def _since(moment: float) -> timedelta:
        return timedelta(seconds=time.monotonic() - moment)


def _introduction(server: YarnServer) -> ClusterInfo | KstreamError:
    """Return what it says of itself, or the reason why it doesn't: one wrong answer must not hide the others' right
    ones."""
    try:
        return server.info()
    except KstreamError as error:
        return error
