"""The maintenance DAG: its form, and the declarations that it accepts."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from tests.airflow.declarations import Declarations, form


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declarations:
    return Declarations("leases", tmp_path, monkeypatch)


def test_a_declaration_makes_one_dag_of_one_run_at_a_time(declared: Declarations) -> None:
    [dag] = declared.dags_of("paths: [/data]").values()

    assert (dag.dag_id, dag.max_active_runs, dag.catchup) == ("leases-prod", 1, False)
    assert dag.task_dict["recover"].is_mapped


def test_every_field_of_the_form_is_explained_typed_and_has_a_valid_default(declared: Declarations) -> None:
    [dag] = declared.dags_of("paths: [/data]").values()

    for name, field in form(dag).items():
        assert {"title", "type", "section"} <= field.schema.keys(), name
        assert field.description.endswith("."), name
        # If a field has examples, the form lets a person choose one of them and enter nothing else.
        assert "examples" not in field.schema, name
        field.resolve()
        json.dumps(field.value)


def test_a_declaration_gives_the_forms_defaults(declared: Declarations) -> None:
    [dag] = declared.dags_of("{paths: [/data], patterns: ['*.tmp'], min_age: 30m, in_all: 9, dry_run: true}").values()

    values = {name: field.value for name, field in form(dag).items()}
    assert (values["paths"], values["patterns"]) == (["/data"], ["*.tmp"])
    assert (values["min_age"], values["dry_run"], values["approve"]) == ("30m", True, [])
    assert (values["in_all"], values["per_datanode"], values["deadline"]) == (9, None, "15m")


@pytest.mark.parametrize("name", ["patterns", "allowed", "approve"])
def test_what_is_left_empty_is_sent_as_nothing_or_as_an_empty_line(declared: Declarations, name: str) -> None:
    [dag] = declared.dags_of("paths: [/data]").values()

    for value in (None, [], [""]):
        assert form(dag)[name].resolve(value) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("paths", None),
        ("paths", ["data"]),
        ("paths", "/data"),
        ("patterns", [1]),
        ("min_age", "soon"),
        ("leak_after", "10"),
        ("limits", "wild"),
        ("per_datanode", 0),
        ("in_all", "many"),
        ("deadline", "900"),
        ("backend", "magic"),
        ("dry_run", "perhaps"),
        ("approve", ["*"]),
    ],
)
def test_the_form_refuses_what_the_operator_would(declared: Declarations, name: str, value: object) -> None:
    [dag] = declared.dags_of("paths: [/data]").values()

    with pytest.raises(ParamValidationError):
        form(dag)[name].resolve(value)


@pytest.mark.parametrize(
    ("path", "approve", "named"),
    [("/etc", [], "/etc"), ("/data/landing/..", [], "path"), ("/data/landing", ["/etc/a"], "/etc/a")],
)
def test_a_run_by_hand_reaches_nothing_that_is_not_declared(
    declared: Declarations, path: str, approve: list[str], named: str
) -> None:
    """The user who starts it chooses its paths; the worker refuses them before it opens a connection."""
    [dag] = declared.dags_of("paths: [/data/landing]").values()
    task = dag.task_dict["recover"].unmap({"path": path})
    task.request, task.only_plan = {"approve": approve}, True

    with pytest.raises(AirflowFailException, match=named):
        task.execute(cast("Any", {"dag_run": SimpleNamespace(run_type="manual", triggering_user_name="mallory")}))


def test_a_run_that_anothers_dag_triggered_approves_nothing_in_a_persons_name(declared: Declarations) -> None:
    """Airflow gives it the name of the user who triggered that DAG: who wrote it would approve as that user."""
    [dag] = declared.dags_of("paths: [/data/landing]").values()
    task = dag.task_dict["recover"].unmap({"path": "/data/landing"})
    task.request, task.only_plan = {"approve": ["/data/landing/a"]}, True
    run = SimpleNamespace(run_type="operator_triggered", triggering_user_name="ann")

    with pytest.raises(AirflowFailException, match="paths are approved and nobody is named"):
        task.execute(cast("Any", {"dag_run": run}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "paths is missing"),
        ("paths: []", "paths is a list; allowed is 1 entries or more"),
        ("paths: [data]", "paths.0 is 'data'; allowed is an absolute HDFS path"),
        ("{paths: [/data], pattern: x}", "pattern"),
        ("{paths: [/data], approve: [/data/a]}", "approve"),
        ("{paths: [/data], allowed: ['=orders']}", "PATTERN"),
        ("{paths: [/data], every: often}", "often"),
        ("{paths: [/data], every: 0s}", "every"),
        ("{paths: [/data], every: 99999999999999w}", "longer than anything lasts"),
        ("{paths: [/data], patterns: 5}", "patterns"),
        ("{paths: [/data], 1: x}", "1: there is no such field"),
        ("{paths: /data}", "paths"),
        ("{paths: [/data], patterns: ['']}", "patterns"),
        ("{paths: ['', /data]}", "paths"),
        ("{paths: [/data], min_age: soon}", "min_age"),
        ("{paths: [/data], airflow: {notify: {kwargs: {text: x}}}}", "airflow.notify.kwargs"),
        ("{paths: ['/data/{{ x }}']}", "a template"),
        ("{paths: [/data], per_datanode: 9, in_all: 8}", "per_datanode is 9; allowed is at most in_all"),
        ("{paths: [/data], deadline: 0s}", "deadline"),
        ("{paths: [/data", "this is not YAML"),
    ],
)
def test_a_wrong_declaration_gets_a_dag_that_says_why(declared: Declarations, text: str, why: str) -> None:
    [dag] = declared.dags_of(text).values()

    assert dag.dag_id == "refused-leases-prod"
    assert why in str(dag.description)
