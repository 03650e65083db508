"""The maintenance DAGs for tickets: their form, and the declarations that they accept."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.sdk.exceptions import ParamValidationError

from tests.airflow.declarations import Declarations, form

ONE = "principals: [{principal: etl@R, keytab: /k}]"


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declarations:
    return Declarations("tickets", tmp_path, monkeypatch)


@pytest.mark.parametrize("text", ["", ONE])
def test_a_declaration_makes_two_dags_of_one_run_at_a_time(declared: Declarations, text: str) -> None:
    dags = declared.dags_of(text)

    assert [(dag.dag_id, dag.max_active_runs, dag.catchup) for dag in dags.values()] == [
        ("tickets-prod", 1, False),
        ("keytabs-prod", 1, False),
    ]
    assert dags["tickets-prod"].task_dict["renew"].is_mapped


def test_tickets_are_renewed_often_and_keytabs_checked_daily(declared: Declarations) -> None:
    assert [dag.schedule for dag in declared.dags_of("").values()] == [timedelta(minutes=15), timedelta(days=1)]
    assert [dag.schedule for dag in declared.dags_of("{every: 5m, check_every: 6h}").values()] == [
        timedelta(minutes=5),
        timedelta(hours=6),
    ]


def test_every_field_of_the_form_is_explained_typed_and_has_a_valid_default(declared: Declarations) -> None:
    for name, field in form(declared.dags_of(ONE)["tickets-prod"]).items():
        assert {"title", "type", "section"} <= field.schema.keys(), name
        assert field.description.endswith("."), name
        # If a field has examples, the form lets a person choose one of them and enter nothing else.
        assert "examples" not in field.schema, name
        field.resolve()
        json.dumps(field.value)


@pytest.mark.parametrize(("name", "value"), [("principal", "etl"), ("principal", ["etl@R"]), ("force", "perhaps")])
def test_the_form_refuses_what_the_operator_would(declared: Declarations, name: str, value: object) -> None:
    with pytest.raises(ParamValidationError):
        form(declared.dags_of(ONE)["tickets-prod"])[name].resolve(value)


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
def test_a_wrong_declaration_gets_a_dag_that_says_why(declared: Declarations, text: str, why: str) -> None:
    [dag] = declared.dags_of(text).values()

    assert dag.dag_id == "refused-tickets-prod"
    assert why in str(dag.description)
