"""A declaration that can't be read costs no other its DAG, whichever shipped file reads it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_kstream.demo.ground import DAGS
from tests.dags.declarations import Declarations

STREAM = "{name: orders, credentials: {mode: ticket}, application: /jobs/orders.py, checkpoints: [/c]}"
KINDS = ("streams", "leases", "tickets")


@pytest.mark.parametrize(
    ("kind", "folder", "good", "whole"),
    [
        ("streams", "prod", STREAM, "stream-orders"),
        ("leases", "", "paths: [/data]", "leases-orders"),
        ("tickets", "", "", "tickets-orders"),
    ],
)
def test_what_is_no_text_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, folder: str, good: str, whole: str
) -> None:
    declarations = tmp_path / folder
    declarations.mkdir(exist_ok=True)
    (declarations / "orders.yaml").write_text(good)
    (declarations / "latin.yaml").write_bytes("# für die Nacht".encode("latin-1"))
    (declarations / "folder.yaml").mkdir()
    names = Declarations(kind, tmp_path, monkeypatch).dags()
    assert whole in names
    assert len([name for name in names if name.startswith("refused-")]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_not_there_gets_a_dag_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    [dag] = Declarations(kind, tmp_path / "nowhere", monkeypatch).dags().values()
    assert dag.dag_id == f"refused-{kind}"
    assert "there is no such folder" in str(dag.description)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_made_of_nothing(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.delenv(f"KSTREAM_{kind.upper()}", raising=False)
    made = runpy.run_path(str(DAGS / f"kstream_{kind}.py"))
    assert not [value for value in made.values() if isinstance(value, DAG)]


def test_two_clusters_can_t_declare_the_same_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cluster in ("east", "west"):
        (tmp_path / cluster).mkdir()
        (tmp_path / cluster / "orders.yaml").write_text(STREAM)
    dags = Declarations("streams", tmp_path, monkeypatch).dags()
    assert sorted(dags) == ["refused-streams-west-orders", "stream-orders"]
    assert "another cluster's folder declares 'orders'" in str(dags["refused-streams-west-orders"].description)
