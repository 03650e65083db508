"""The configuration that a Hadoop daemon runs with, as its own /conf tells it, and its clock.

Every daemon of HDFS and YARN has that page (ConfServlet), a standby as well. It has the defaults of the daemon's own
version, and names the file that set each value. Any user may read it unless hadoop.security.instrumentation.
requires.admin is true there; secrets are redacted by the daemon (ConfigRedactor).

A request without a login tells which of these web servers answer anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from airflow_kstream.clients.http import REFUSALS, http_errors, kerberos_session, senseless, server_date
from airflow_kstream.clients.waiting import TimeLimits, limit_whole_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.cluster_facts import EffectiveConf, OpenWeb, Property
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity

_TRIED_NAMELESS = "ask without a login"
_NAMELESS = "user not authenticated by filter"
# It answers from memory.
_FOR_THE_NAMELESS = TimeLimits(5.0, 10.0, 15.0)

_TRIED = "read its configuration"
# Hadoop 2 goes by the parameter, Hadoop 3 by the header.
_PATH = "/conf?format=json"
_HEADERS = {"Accept": "application/json"}
# It answers from memory. One that is frozen must not hold up the others' answers for longer.
_TO_ANSWER = TimeLimits(5.0, 10.0, 20.0)


@dataclass(frozen=True)
class ServedConf:
    """A daemon's configuration, and how far its clock was ahead of this host's; None if it doesn't tell the time."""

    conf: EffectiveConf
    ahead: timedelta | None


def served_conf(address: str, identity: Identity, tls: Tls) -> ServedConf:
    """Read the page of one daemon by its web address.

    Raises Denied: when only administrators may read it. Raises Unavailable: when the answer is not a daemon's.
    """
    server = address.rstrip("/")
    session = kerberos_session(identity, tls)
    context = {"tried": _TRIED, "server": server, "principal": str(identity)}
    try:
        # Three limits: this session's adapter reads the third.
        limits: Any = _TO_ANSWER
        with http_errors(_TRIED, server, identity):
            before = datetime.now(UTC)
            answer = session.get(server + _PATH, headers=_HEADERS, timeout=limits, allow_redirects=False)
            after = datetime.now(UTC)
    finally:
        session.close()
    if answer.status_code != 200:
        raise REFUSALS.get(answer.status_code, Unavailable)(f"it answered {answer.status_code}", **context)
    try:
        properties = {str(one["key"]): _property(one) for one in answer.json()["properties"]}
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise Unavailable(senseless(answer, type(error).__name__), **context) from None
    return ServedConf(EffectiveConf(server, properties), _ahead(answer, before, after))


def _property(one: Mapping[str, Any]) -> Property:
    return Property(str(one["value"]), str(one.get("resource") or "unknown").rpartition("/")[2])


def _ahead(answer: requests.Response, before: datetime, after: datetime) -> timedelta | None:
    """Return the server's time less ours. A Date has whole seconds, so within one second they agree."""
    try:
        date = server_date(answer)
    except (ValueError, OverflowError):
        return None
    if before - timedelta(seconds=1) <= date <= after:
        return timedelta()
    return date - (before + (after - before) / 2)


def open_namenode(address: str, identity: Identity, tls: Tls) -> OpenWeb | None:
    """Return whom a NameNode's WebHDFS takes everybody for; None unless it shows that it wants no proof.

    WebHDFS counts alone: /jmx and /conf beside it may be open to everybody. Raises Unavailable: when it doesn't answer.
    """
    answer = _asked(address, "/webhdfs/v1/?op=GETHOMEDIRECTORY", identity, tls)
    home = _told(answer, "Path")
    return OpenWeb(address.rstrip("/"), str(home or "").rpartition("/")[2]) if home or _wants_a_name(answer) else None


def open_nodemanager(address: str, identity: Identity, tls: Tls) -> OpenWeb | None:
    """Return a NodeManager that shows that it wants no proof, else None. Raises Unavailable: when it doesn't answer."""
    answer = _asked(address, "/ws/v1/node/info", identity, tls)
    return OpenWeb(address.rstrip("/")) if _told(answer, "nodeInfo") or _wants_a_name(answer) else None


def _asked(address: str, path: str, identity: Identity, tls: Tls) -> requests.Response:
    server = address.rstrip("/")
    # Three limits: this session's adapter reads the third.
    limits: Any = _FOR_THE_NAMELESS
    with requests.Session() as session, http_errors(_TRIED_NAMELESS, server, identity):
        # A .netrc of the environment would be a login.
        session.trust_env = False
        session.verify = tls.verify
        limit_whole_answers(session, _FOR_THE_NAMELESS.whole)
        return session.get(server + path, headers=_HEADERS, timeout=limits, allow_redirects=False)


def _told(answer: requests.Response, key: str) -> object:
    """Return what the server's own object holds; None of a refusal, and of a page of something in between."""
    try:
        return answer.json()[key] if answer.status_code == 200 else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _wants_a_name(answer: requests.Response) -> bool:
    """Return whether it refuses who gives no name (PseudoAuthenticationHandler, JspHelper.getUGI): it would believe
    any."""
    return "PseudoAuth" in answer.headers.get("WWW-Authenticate", "") or _NAMELESS in answer.text
