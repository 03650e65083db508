"""What web servers do with a request that proves nothing: one without a login to each."""

from __future__ import annotations

from typing import Any

import requests

from airflow_kstream.clients.http import http_errors
from airflow_kstream.clients.waiting import TimeLimits
from airflow_kstream.clients.whole_answer import limit_whole_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.cluster_facts import OpenWeb
from airflow_kstream.model.kerberos.identity import Identity

_TRIED = "ask without a login"
_HEADERS = {"Accept": "application/json"}
_NAMELESS = "user not authenticated by filter"
# It answers from memory.
_TO_ANSWER = TimeLimits(5.0, 10.0, 15.0)


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
    limits: Any = _TO_ANSWER
    with requests.Session() as session, http_errors(_TRIED, server, identity):
        # A .netrc of the environment would be a login.
        session.trust_env = False
        session.verify = tls.verify
        limit_whole_answers(session, _TO_ANSWER.whole)
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
