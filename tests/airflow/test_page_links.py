"""The button that leads from a task to the page of what it is about."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import BaseOperator

from airflow_kstream.links import PageLink
from airflow_kstream.operators.fleet_look import FleetLookOperator
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.operators.stream_control import StreamControlOperator
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator, KeytabCheckOperator

DECLARATION = {"name": "orders", "credentials": {"mode": "ticket"}, "application": "/j.py", "checkpoints": ["/d/c"]}
CONTROL = {"action": "freeze", "reason": "an upgrade"}


def link(operator: type[BaseOperator], **arguments: Any) -> str:
    [page] = [each for each in operator.operator_extra_links if isinstance(each, PageLink)]
    it = operator(task_id="it", cluster_conn_id="p/1", **arguments)
    return page.get_link(it, ti_key=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operator", "arguments", "query"),
    [
        (SparkStreamOperator, {"stream": DECLARATION}, "cluster=p%2F1&stream=orders"),
        (StreamControlOperator, {"stream": "orders", "action": "hold", "reason": "x"}, "cluster=p%2F1&stream=orders"),
        (StreamControlOperator, CONTROL, "show="),
        (FleetLookOperator, {}, "show="),
        (HdfsLeaseRecoverOperator, {"path": "/data"}, "view=files"),
        (KerberosTicketRenewOperator, {}, "view=tickets"),
        (KeytabCheckOperator, {}, "view=tickets"),
    ],
)
def test_each_of_our_tasks_leads_to_its_page(
    operator: type[BaseOperator], arguments: dict[str, Any], query: str
) -> None:
    assert link(operator, **arguments) == f"/plugin/kstream?{query}"


def test_a_declaration_that_can_not_be_read_has_a_grey_button() -> None:
    assert link(SparkStreamOperator, stream="name: [") == ""


def test_the_address_begins_with_that_of_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://air.example.com/prod/")
    assert link(KeytabCheckOperator) == "https://air.example.com/prod/plugin/kstream?view=tickets"
