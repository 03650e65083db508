"""The maintenance DAGs for tickets: what their form offers, and what a declaration may say."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from airflow_kstream.demo.ground import DAGS

Declare = Callable[..., dict[str, DAG]]
ONE = "principals: [{principal: etl@R, keytab: /k}]"


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """The DAGs that the shipped file makes of one declaration's text."""

    def dags(text: str, name: str = "prod") -> dict[str, DAG]:
        (tmp_path / f"{name}.yaml").write_text(text)
        monkeypatch.setenv("KSTREAM_TICKETS", str(tmp_path))
        made = runpy.run_path(str(DAGS / "kstream_tickets.py"))
        return {value.dag_id: value for value in made.values() if isinstance(value, DAG)}

    return dags


def form(dag: DAG) -> Mapping[str, Any]:
    return {name: dag.params.get_param(name) for name in dag.params}


@pytest.mark.parametrize("text", ["", ONE])
def test_a_declaration_makes_two_dags_of_one_run_at_a_time(declare: Declare, text: str) -> None:
    dags = declare(text)

    assert [(dag.dag_id, dag.max_active_runs, dag.catchup) for dag in dags.values()] == [
        ("tickets-prod", 1, False),
        ("keytabs-prod", 1, False),
    ]
    assert dags["tickets-prod"].task_dict["renew"].is_mapped


def test_tickets_are_renewed_often_and_keytabs_checked_daily(declare: Declare) -> None:
    assert [dag.schedule for dag in declare("").values()] == [timedelta(minutes=15), timedelta(days=1)]
    assert [dag.schedule for dag in declare("{every: 5m, check_every: 6h}").values()] == [
        timedelta(minutes=5),
        timedelta(hours=6),
    ]


def test_every_field_of_the_form_is_explained_typed_and_has_a_valid_default(declare: Declare) -> None:
    for name, field in form(declare(ONE)["tickets-prod"]).items():
        assert {"title", "type", "section"} <= field.schema.keys(), name
        assert field.description.endswith("."), name
        field.resolve()
        json.dumps(field.value)


@pytest.mark.parametrize(("name", "value"), [("principal", "etl"), ("principal", ["etl@R"]), ("force", "perhaps")])
def test_the_form_refuses_what_the_operator_would(declare: Declare, name: str, value: object) -> None:
    with pytest.raises(ParamValidationError):
        form(declare(ONE)["tickets-prod"])[name].resolve(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{principal: etl@R}", "principal"),
        ("principals: [{principal: etl, keytab: /k}]", "etl"),
        ("principals: [{principal: etl@R, keytab: k}]", "absolute path"),
        ("principals: [{principal: etl@R, keytab: /k}, {principal: etl@R, keytab: /l}]", "more than once"),
        ("every: often", "often"),
        ("renew_at: 2", "renew_at"),
        ("[etl@R]", "mapping"),
        ("{principals: [", "YAML"),
    ],
)
def test_a_wrong_declaration_gets_a_dag_that_says_why(declare: Declare, text: str, why: str) -> None:
    [dag] = declare(text).values()

    assert dag.dag_id == "refused-tickets-prod"
    assert why in str(dag.description)


def test_a_folder_that_is_not_there_gets_a_dag_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSTREAM_TICKETS", "/nope")
    made = runpy.run_path(str(DAGS / "kstream_tickets.py"))

    [dag] = (value for value in made.values() if isinstance(value, DAG))
    assert dag.dag_id == "refused-tickets"
    assert "there is no such folder" in str(dag.description)


def test_nothing_is_made_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KSTREAM_TICKETS", raising=False)
    made = runpy.run_path(str(DAGS / "kstream_tickets.py"))

    assert not [value for value in made.values() if isinstance(value, DAG)]
