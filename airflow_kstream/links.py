"""Buttons on a task's page: to the page of its stream, files or tickets, and to its application on YARN.

The operator pushes the addresses on YARN as XComs; the API server reads them from there in every task state, including
deferred (a deferred task has no process that could answer).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf
from airflow.sdk.execution_time.xcom import XCom

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


class _XComAddress(BaseOperatorLink):
    """A link whose address is the XCom that the operator pushed under `xcom_key`.

    Airflow stores the result of `get_link` under `xcom_key` whenever a worker is done with the task. Since that is
    the operator's own key, the button shows a pushed address at once, and a push after a restart replaces the old one.
    """

    name = ""
    xcom_key = ""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address, or an empty string (a grey button) while the task has no application."""
        return str(XCom.get_value(ti_key=ti_key, key=self.xcom_key) or "")


class YarnApplicationLink(_XComAddress):
    """The application's page on the active ResourceManager."""

    name = "YARN application"
    xcom_key = "yarn_application"


class YarnLogsLink(_XComAddress):
    """The logs of the application: aggregated ones, or the containers' own while it runs."""

    name = "YARN logs"
    xcom_key = "yarn_logs"
