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


def test_a_declaration_makes_two_dags_of_one_run_at_a_time(declared: Declarations) -> None:
    dags = declared.dags_of(ONE)
    assert [(dag.dag_id, dag.max_active_runs, dag.catchup) for dag in dags.values()] == [
        ("tickets-prod", 1, False),
        ("keytabs-prod", 1, False),
    ]
    assert [dag.schedule for dag in dags.values()] == [timedelta(minutes=15), timedelta(days=1)]
    assert dags["tickets-prod"].task_dict["renew"].is_mapped
    rarely = declared.dags_of("{every: 5m, check_every: 6h}")
    assert [dag.schedule for dag in rarely.values()] == [timedelta(minutes=5), timedelta(hours=6)]


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


def test_a_wrong_declaration_gets_a_dag_that_says_why(declared: Declarations) -> None:
    [dag] = declared.dags_of("renew_at: 2").values()
    assert dag.dag_id == "refused-tickets-prod"
    assert "renew_at" in str(dag.description)
