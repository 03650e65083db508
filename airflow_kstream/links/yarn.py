"""Links from a task to the ResourceManager's page of its application, and to that application's logs.

The operator pushes both addresses as XComs; the API server reads them from there in every task state, including
deferred (a deferred task has no process that could answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.execution_time.xcom import XCom

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey


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
