"""A link from a task to the page of what it is about: its stream, its files or its tickets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

_PAGE = "/plugin/kstream"


def page_address(query: Mapping[str, str]) -> str:
    """Return the address of a page in Airflow's UI. Without `[api] base_url` it is relative to Airflow's host."""
    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return f"{base}{_PAGE}?{urlencode(query)}"


class PageLink(BaseOperatorLink):
    """A link to the page that the operator's `page` names. Airflow stores it when a worker is done with the task.

    It is a link and not a tab, because Airflow shows a plugin's tab on every task of every DAG.
    """

    name = "Streams page"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address, or an empty string (a grey button) for an operator that names no page."""
        query: Mapping[str, str] = getattr(operator, "page", {})
        return page_address(query) if query else ""
