"""Questions whose answer may be missing: the reason then takes the answer's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_kstream.model.clusters.cluster_facts import NotKnown
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.finding import NotChecked

T = TypeVar("T")


def unanswered(what: str, error: KstreamError) -> NotChecked:
    """Return why a fact of one of many is missing, without the path that was read: a server has one reason for all."""
    server = f" ({error.server})" if error.server else ""
    return NotChecked(what, f"{error.message.rstrip('.')}{server}")


def try_ask(what: str, ask: Callable[[], T], right: str = "") -> T | NotChecked:
    """Return the answer, or why there is none; `right` is what a refused principal lacks."""
    try:
        return ask()
    except NotKnown as missing:
        return missing.fact
    except KstreamError as error:
        return NotChecked(what, error.without_advice, right if isinstance(error, Denied) else "")
