"""`validate` and `schema`: declarations are checked without a cluster, all faults of all files at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.model.declaration_kinds import STREAMS
from tests.commands import ran

GOOD = """
name: orders
credentials: {mode: ticket}
application: hdfs:///apps/orders.py
checkpoints: [/checkpoints/orders]
"""
TYPO = GOOD + "deploy: {quue: a}\nconf: {spark.ssl.keyPassword: hunter2}\n"
WAITS = ("marker_grace", "quiescent_wait", "signal_grace", "kill_wait", "silence", "longest_silence", "am_expiry")
MORE = "submit: {timeout: soon, ttl: soon}\n"
KINDS = {
    "streams": GOOD,
    "leases": "paths: [/data]",
    "tickets": "principals: [{principal: etl@R, keytab: /k}]",
    "tokens": "users: [alice]",
}


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing name one: these commands need none."""
    monkeypatch.delenv("KSTREAM_CLUSTER", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of declarations as the shipped DAGs read it: a good one, and faults of four sorts."""
    prod = tmp_path / "streams" / "prod"
    prod.mkdir(parents=True)
    (prod / "orders.yaml").write_text(GOOD)
    (prod / "clicks.yaml").write_text(TYPO)
    (prod / "views.yml").write_text(GOOD.replace("orders", "views") + 'arguments: ["{{ ds }}"]')
    (prod / "twice.yaml").write_text("name: a\nname: b\n")
    (prod / ".#orders.yaml").write_text("an editor's own")
    return tmp_path / "streams"


def faults(words: str) -> dict[str, list[str]]:
    """Return the faults of each file, by its name."""
    validated = ran("streams", "validate", *words.split(), "--json")
    assert validated.code == (2 if any(row["faults"] for row in validated.data) else 0)
    return {Path(row["file"]).name: row["faults"] for row in validated.data}


def test_all_faults_of_all_files_come_at_once(folder: Path) -> None:
    found = faults(f"{folder} {folder}/nope.yaml")
    assert list(found) == ["clicks.yaml", "orders.yaml", "twice.yaml", "views.yml", "nope.yaml"]
    assert found["orders.yaml"] == []
    typo, secret, name = found["clicks.yaml"]
    assert "deploy.quue: there is no such field" in typo
    assert "conf.spark.ssl.keyPassword: a secret in clear" in secret
    assert name == "it declares 'orders'; the file's name is the stream's name"
    assert found["twice.yaml"] == ["line 2: 'name' is given twice; the first is in line 1"]
    assert found["nope.yaml"] == ["can't be read: No such file or directory"]
    assert "a template" in found["views.yml"][0]


def test_a_person_reads_one_line_for_each_fault_and_no_secret(folder: Path) -> None:
    validated = ran("streams", "validate", str(folder))
    assert validated.code == 2
    assert [line.partition(": ")[0] for line in validated.out.splitlines()] == [
        *[f"{folder}/prod/clicks.yaml"] * 3,
        f"{folder}/prod/twice.yaml",
        f"{folder}/prod/views.yml",
    ]
    assert validated.err == "files: 4, wrong: 3\n"
    assert "hunter2" not in validated.out


def test_a_single_file_may_have_any_name(tmp_path: Path) -> None:
    """It is for `reconcile`, which the name does not concern; only a folder is read by the shipped DAGs."""
    (tmp_path / "draft.yaml").write_text(GOOD)
    assert faults(f"{tmp_path}/draft.yaml") == {"draft.yaml": []}


def test_more_faults_than_a_refusal_names_are_all_printed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD + f"stop: {{{', '.join(f'{name}: soon' for name in WAITS)}}}\n{MORE}")
    (found,) = faults(f"{tmp_path}/a.yaml").values()
    names = [*(f"stop.{name}" for name in WAITS), "submit.timeout", "submit.ttl"]
    assert [fault.partition(":")[0] for fault in found] == names


def test_two_streams_of_a_folder_whose_checkpoints_overlap_are_named(tmp_path: Path) -> None:
    streams = {"orders": "/c/orders", "clicks": "hdfs://prod/c/orders/clicks", "views": "hdfs://other/c/orders/clicks"}
    for name, checkpoint in streams.items():
        text = GOOD.replace("/checkpoints/orders", checkpoint).replace("name: orders", f"name: {name}")
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "test").mkdir()
    (tmp_path / "test/orders.yaml").write_text(GOOD.replace("/checkpoints/orders", "/c/orders/of-another-cluster"))
    validated = ran("streams", "validate", str(tmp_path))
    assert [line.removeprefix(f"{tmp_path}/") for line in validated.out.splitlines()] == [
        "clicks.yaml: checkpoints: hdfs://prod/c/orders/clicks and /c/orders of orders.yaml lie in one another",
        "orders.yaml: checkpoints: /c/orders and hdfs://prod/c/orders/clicks of clicks.yaml lie in one another",
        "orders.yaml: checkpoints: /c/orders and hdfs://other/c/orders/clicks of views.yaml lie in one another",
        "views.yaml: checkpoints: hdfs://other/c/orders/clicks and /c/orders of orders.yaml lie in one another",
    ]


def test_a_mistyped_folder_does_not_pass(tmp_path: Path) -> None:
    assert faults(str(tmp_path)) == {tmp_path.name: ["there is no .yaml or .yml file in this folder"]}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_declaration_has_both_commands(kind: str, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(KINDS[kind])
    assert ran(kind, "validate", str(tmp_path)).code == 0
    (tmp_path / "orders.yaml").write_text(f"{KINDS[kind]}\nno_such_field: 1")
    refused = ran(kind, "validate", str(tmp_path))
    assert (refused.code, "no_such_field: there is no such field" in refused.out) == (2, True)
    assert "$schema" in ran(kind, "schema").data


def test_the_schema_is_printed_as_it_is() -> None:
    assert ran("streams", "schema").data == STREAMS.schema()


def test_plan_tells_a_wrong_file_where_the_connection_is_wrong_too(tmp_path: Path) -> None:
    (tmp_path / "clicks.yaml").write_text(TYPO)
    planned = ran("streams", "plan", f"{tmp_path}/clicks.yaml", "--cluster", "/nope.yaml")
    assert planned.code == 2
    assert "deploy.quue: there is no such field" in planned.err
