"""What a declaration says to Airflow about its own tasks, and what must not follow from an edit of it."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import DAG
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.serialization.serialized_objects import DagSerialization

from airflow_kstream.model.airflow_options import AirflowOptions, NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.declarations import Change, change, differences, fingerprint
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim
from tests.airflow import notifiers
from tests.airflow.declarations import Declarations
from tests.simulated.fleet import FIELDS

STREAM = "name: orders\ncredentials: {mode: ticket}\napplication: /jobs/orders.py\ncheckpoints: [/c]\n"
OPTIONS = "airflow: {queue: edge, pool: streams, priority: 7, owner: ann, tags: [sales], executor_config: {image: i}}\n"


def dags_of_stream(folder: Path, patch: pytest.MonkeyPatch, text: str) -> dict[str, DAG]:
    (folder / "prod").mkdir()
    (folder / "prod" / "orders.yaml").write_text(text)
    return Declarations("streams", folder, patch).dags()


def carried(dag: DAG) -> set[tuple[object, ...]]:
    """Return what the scheduler reads of each task of the DAG in Airflow's database."""
    stored = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(dag))))
    return {
        (
            task.queue,
            task.pool,
            task.priority_weight,
            type(task.weight_rule).__name__,
            task.owner,
            *task.executor_config,
        )
        for task in stored.tasks
    }


CARRIED = {("edge", "streams", 7, "_AbsolutePriorityWeightStrategy", "ann", "image")}


def test_the_task_of_a_stream_carries_what_its_declaration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = dags_of_stream(tmp_path, monkeypatch, STREAM + OPTIONS)["stream-prod.orders"]
    assert carried(dag) == CARRIED
    assert dag.tags == {"kstream", "sales"}


@pytest.mark.parametrize(("kind", "text"), [("leases", "paths: [/data]\n"), ("tickets", "")])
def test_every_task_of_leases_and_tickets_carries_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    dags = Declarations(kind, tmp_path, monkeypatch).dags_of(text + OPTIONS)
    for dag in dags.values():
        assert carried(dag) == CARRIED
        assert dag.tags == {"kstream", "sales"}


def test_a_folders_two_other_dags_have_what_its_declarations_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their tasks need the same keytabs. A pool full of watched streams would keep a person's word out."""
    folder = tmp_path / "prod"
    folder.mkdir()
    declarations = Declarations("streams", tmp_path, monkeypatch)
    for name, text in (
        ("orders", STREAM + OPTIONS),
        ("sales", STREAM + OPTIONS.replace("sales", "other")),
        ("typo", "nmae: typo"),
    ):
        (folder / f"{name}.yaml").write_text(text.replace("name: orders", f"name: {name}"))
    dags = declarations.dags()
    for dag_id, tags in {"undeclared-prod": {"kstream"}, "control-prod": {"kstream", "control"}}.items():
        assert carried(dags[dag_id]) == {
            ("edge", "default_pool", 1, "_DownstreamPriorityWeightStrategy", "ann", "image")
        }
        assert dags[dag_id].tags == tags

    (folder / "plain.yaml").write_text(STREAM.replace("name: orders", "name: plain"))
    assert {of for dag_id in ("undeclared-prod", "control-prod") for of in carried(declarations.dags()[dag_id])} == {
        ("default", "default_pool", 1, "_DownstreamPriorityWeightStrategy", "airflow")
    }


def test_without_them_airflows_own_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = dags_of_stream(tmp_path, monkeypatch, STREAM)["stream-prod.orders"]
    assert carried(dag) == {("default", "default_pool", 1, "_DownstreamPriorityWeightStrategy", "airflow")}


def test_a_typo_elsewhere_does_not_move_the_task_to_workers_without_its_keytab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = dags_of_stream(tmp_path, monkeypatch, STREAM.replace("application", "applicaton") + OPTIONS)[
        "stream-prod.orders"
    ]
    assert carried(dag) == CARRIED
    assert dag.tags == {"kstream", "refused", "sales"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("{quue: a}", r"airflow\.quue: there is no such field; the fields of airflow are queue, pool, priority, owner"),
        ("{priority: high}", r"airflow\.priority is 'high'; allowed is a whole number"),
        ("{priority: 9999999999}", r"airflow\.priority is 9999999999; allowed is a whole number between"),
        ("{tags: sales}", r"airflow\.tags is 'sales'; allowed is a list"),
        (f"{{tags: [{'a' * 101}]}}", r"airflow\.tags\.0 is .*; allowed is up to 100 printable"),
        (f"{{pool: {'a' * 251}}}", r"airflow\.pool is .*; allowed is up to 250 printable"),
        ("{owner: ''}", r"airflow\.owner is empty; allowed is up to 250 printable"),
        ("{executor_config: [image]}", r"airflow\.executor_config is a list; allowed is a mapping"),
        ("edge", r"airflow is 'edge'; allowed is a mapping of fields to values"),
    ],
)
def test_what_is_wrong_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, why: str
) -> None:
    block = f"airflow: {options}\n"
    with pytest.raises(InvalidInput, match=why):
        StreamSpec.from_yaml(STREAM + block)
    for kind, text in {"leases": "paths: [/data]\n", "tickets": ""}.items():
        folder = tmp_path / kind
        folder.mkdir()
        [dag] = Declarations(kind, folder, monkeypatch).dags_of(text + block).values()
        assert "refused" in dag.tags
        with pytest.raises(InvalidInput, match=why):
            raise InvalidInput(str(dag.description))


NOTIFIERS = """
airflow:
  notify: {notifier: CLASS, kwargs: {name: ops}}
  callbacks:
    on_failure: {notifier: CLASS, kwargs: {name: pager, text: "{{ ti.task_id }} failed"}}
""".replace("CLASS", f"{notifiers.HERE}.Recording")


@pytest.mark.parametrize(("kind", "text"), [("leases", "paths: [/data]"), ("tickets", ""), ("tokens", "users: [a]")])
def test_airflow_calls_a_declared_notifier_when_a_task_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    notifiers.forget()
    monkeypatch.setenv("AIRFLOW_CONN_PROD", json.dumps({"conn_type": "kstream", "extra": FIELDS}))
    for dag in Declarations(kind, tmp_path, monkeypatch).dags_of(text + NOTIFIERS).values():
        assert "refused" not in dag.tags
        DagSerialization.to_dict(dag)
        for task in dag.tasks:
            [callback] = as_operator(task).on_failure_callback
            callback({"ti": task})
    assert notifiers.told
    assert {(name, text.split()[-1]) for name, text in notifiers.told} == {("pager", "failed")}


def as_operator(task: object) -> Any:
    """Return the common arguments of a mapped task, or the task itself."""
    return SimpleNamespace(**task.partial_kwargs) if isinstance(task, MappedOperator) else task


def test_the_tasks_of_a_declaration_tell_its_own_notifier_what_they_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [leases] = Declarations("leases", tmp_path, monkeypatch).dags_of("paths: [/data]\n" + NOTIFIERS).values()
    task = cast("MappedOperator", leases.get_task("recover")).unmap({"path": "/data"})
    assert isinstance(task, HdfsLeaseRecoverOperator)
    assert task.notify == NotifyPolicy(f"{notifiers.HERE}.Recording", {"name": "ops"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("notify: {kwargs: {text: a}}", r"airflow\.notify\.kwargs is given, and airflow\.notify\.notifier is missing"),
        ("notify: {notifier: no.such.Notifier}", r"airflow\.notify\.notifier is 'no\.such\.Notifier', which can't be"),
        ("callbacks: {on_failure: {}}", r"airflow\.callbacks\.on_failure\.notifier is missing"),
        ("callbacks: {on_fire: {notifier: a.B}}", r"airflow\.callbacks\.on_fire"),
        (
            f"callbacks: {{on_retry: {{notifier: {notifiers.HERE}.Recording, kwargs: {{password: hunter22}}}}}}",
            r"airflow\.callbacks\.on_retry\.kwargs\.password: a secret in clear",
        ),
        (
            f"callbacks: {{on_retry: {{notifier: {notifiers.HERE}.Recording, kwargs: {{colour: red}}}}}}",
            r"airflow\.callbacks\.on_retry\.kwargs of .*unexpected keyword argument 'colour'",
        ),
    ],
)
def test_a_notifier_that_can_not_work_is_refused_where_it_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, why: str
) -> None:
    [dag] = Declarations("leases", tmp_path, monkeypatch).dags_of(f"paths: [/data]\nairflow: {{{options}}}\n").values()
    assert "refused" in dag.tags
    with pytest.raises(InvalidInput, match=why):
        raise InvalidInput(str(dag.description))
    assert "hunter22" not in str(dag.description)


@pytest.mark.parametrize("value", [object(), math.inf, [math.nan]], ids=lambda value: type(value).__name__)
def test_a_value_that_json_cannot_hold_is_refused_in_python(value: object) -> None:
    spec = StreamSpec.from_yaml(STREAM)
    with pytest.raises(InvalidInput, match=r"executor_config\.pod_override is .*; allowed is text, numbers"):
        replace(spec, airflow=AirflowOptions(executor_config={"pod_override": value})).checked()
    with pytest.raises(InvalidInput, match=r"notify\.kwargs\.at is .*; allowed is text, numbers"):
        replace(spec, notify=NotifyPolicy("a.B", {"at": value})).checked()


def test_an_edit_of_them_is_no_other_job_and_no_claim_keeps_them() -> None:
    plain, edited = StreamSpec.from_yaml(STREAM), StreamSpec.from_yaml(STREAM + OPTIONS)
    assert fingerprint(plain) == fingerprint(edited)
    assert change(fingerprint(edited), fingerprint(plain)) is Change.NONE
    assert differences(edited, plain) == ()
    draft = ClaimDraft(1, "nonce", edited, TokenLifetimes(timedelta(days=1), timedelta(days=7)), {}, "test")
    assert "edge" not in written_claim(draft, "ann")
    assert "airflow" not in json.loads(written_claim(draft, "ann"))["spec"]


def test_a_pod_needs_the_provider_of_its_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = "airflow: {executor_config: {pod_override: {spec: {containers: [{name: base}]}}}}\n"
    dag = dags_of_stream(tmp_path, monkeypatch, STREAM + pod)["stream-prod.orders"]
    assert "refused" in dag.tags
    assert "pod_override: it needs apache-airflow-providers-cncf-kubernetes" in str(dag.description)


@pytest.mark.parametrize("chosen", ["executor_config: {image: i}", "queue: edge"])
def test_an_installation_may_leave_no_executor_to_declarations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__DECLARED_EXECUTORS", "False")
    dags = dags_of_stream(tmp_path, monkeypatch, STREAM + f"airflow: {{{chosen}}}\n")
    assert "refused" in dags["stream-prod.orders"].tags
    assert "[kstream] declared_executors is False" in str(dags["stream-prod.orders"].description)
    for dag in dags.values():
        assert all(task.queue == "default" and not task.executor_config for task in dag.tasks)


def test_a_refused_file_keeps_what_an_installation_leaves_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its typo must not fill the pool of others, nor make it nobody's."""
    monkeypatch.setenv("AIRFLOW__KSTREAM__DECLARED_EXECUTORS", "False")
    both = "airflow: {queue: edge, pool: streams, owner: ann}\n"
    keep = dags_of_stream(tmp_path, monkeypatch, STREAM + both)["stream-prod.orders"].get_task("keep")
    assert (keep.queue, keep.pool, keep.owner) == ("default", "streams", "ann")


def test_a_wrong_switch_is_an_import_error_and_moves_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KSTREAM__DECLARED_EXECUTORS", "perhaps")
    with pytest.raises(InvalidInput, match=r"\[kstream\] declared_executors is 'perhaps'; allowed is True or False"):
        dags_of_stream(tmp_path, monkeypatch, STREAM + "airflow: {queue: edge}\n")


def test_a_pod_is_handed_over_as_its_executor_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider is simulated: it is not installed here, and its generator is a function of a mapping."""
    module = ModuleType("airflow.providers.cncf.kubernetes.pod_generator")
    made = SimpleNamespace(deserialize_model_dict=lambda pod: ("a pod of", pod["spec"]["nodeName"]))
    module.PodGenerator = made  # type: ignore[attr-defined]
    for name in ("airflow.providers.cncf", "airflow.providers.cncf.kubernetes", module.__name__):
        # The provider would bring a client of Kubernetes along, which no other test needs.
        monkeypatch.setitem(sys.modules, name, module)
    pod = "airflow: {executor_config: {pod_override: {spec: {nodeName: edge-1}}}}\n"
    task = dags_of_stream(tmp_path, monkeypatch, STREAM + pod)["stream-prod.orders"].get_task("keep")
    assert task.executor_config == {"pod_override": ("a pod of", "edge-1")}
