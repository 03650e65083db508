"""The configuration that a Hadoop daemon runs with, as its own /conf tells it, and its clock.

Every daemon of HDFS and YARN has that page (ConfServlet), a standby as well. It has the defaults of the daemon's own
version, and names the file that set each value. Any user may read it unless hadoop.security.instrumentation.
requires.admin is true there; secrets are redacted by the daemon (ConfigRedactor).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from airflow_kstream.clients.http import REFUSALS, http_errors, kerberos_session, senseless, server_date
from airflow_kstream.clients.waiting import TimeLimits
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.cluster_facts import EffectiveConf, Property
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity

_TRIED = "read its configuration"
# Hadoop 2 goes by the parameter, Hadoop 3 by the header.
_PATH, _HEADERS = "/conf?format=json", {"Accept": "application/json"}
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
