"""What is read when Airflow starts one task: the declaration of its DAG, and no other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from airflow.sdk.definitions.context import _AIRFLOW_PARSING_CONTEXT_DAG_ID, get_parsing_context

from tests.airflow.declarations import Declarations

OTHERS = ("control", "doctor", "fleet", "housekeeping", "undeclared")
STREAM = "{{name: {name}, credentials: {{mode: ticket}}, application: /j.py, checkpoints: [/c]}}"

_opened: list[str] | None = None


def _audit(event: str, of: tuple[object, ...]) -> None:
    # Python opens a file by a second event, which has no mode.
    if _opened is not None and event == "open" and of[1] and str(of[0]).endswith(".yaml"):
        _opened.append(Path(str(of[0])).stem)


@cache
def _watch_what_is_opened() -> None:
    """Let Python tell which files it opens, from now on: nobody can take that back."""
    sys.addaudithook(_audit)


@contextmanager
def opened() -> Iterator[list[str]]:
    """Record the declarations that are read, in turn."""
    global _opened
    _watch_what_is_opened()
    names: list[str] = []
    _opened = names
    yield names
    _opened = None


def streams(folder: Path, patch: pytest.MonkeyPatch) -> Declarations:
    for cluster in ("east", "west"):
        (folder / cluster).mkdir()
        for name in ("orders", "sales", "typo"):
            text = STREAM.format(name=name) if name != "typo" else "nmae: typo"
            (folder / cluster / f"{name}.yaml").write_text(text)
    (folder / "west" / "No Name.yaml").write_text("")
    return Declarations("streams", folder, patch)


def start_of_a_task(patch: pytest.MonkeyPatch, dag_id: str) -> None:
    """Say what Airflow's task runner says. Its context manager is not used: it takes nothing back at its end."""
    patch.setenv(_AIRFLOW_PARSING_CONTEXT_DAG_ID, dag_id)
    assert get_parsing_context().dag_id == dag_id


@pytest.mark.parametrize(
    ("dag_id", "reads", "makes"),
    [
        ("stream-west.orders", ["orders"], ["stream-west.orders"]),
        ("stream-west.typo", ["typo", "typo"], ["stream-west.typo"]),
        # They concern all streams of a folder, by the names of their files.
        *[(f"{other}-east", [], [f"{each}-east" for each in OTHERS]) for other in OTHERS],
        # Removed meanwhile.
        ("stream-west.gone", [], []),
    ],
)
def test_a_streams_task_reads_one_declaration(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dag_id: str,
    reads: list[str],
    makes: list[str],
) -> None:
    declarations = streams(tmp_path, monkeypatch)
    everything = declarations.dags()
    start_of_a_task(monkeypatch, dag_id)
    with opened() as names:
        made = declarations.dags()
    assert names == reads
    assert sorted(made) == makes
    for name, dag in made.items():
        assert repr(dag.tasks) == repr(everything[name].tasks)
        assert vars(dag.tasks[0]).keys() == vars(everything[name].tasks[0]).keys()


def test_no_stream_waits_for_the_import_of_a_notifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose import hangs is for the DAG processor to find out."""
    declarations = streams(tmp_path, monkeypatch)
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", "no.such.Notifier")
    assert "refused-streams-notifier" in declarations.dags()
    start_of_a_task(monkeypatch, "stream-west.orders")
    assert sorted(declarations.dags()) == ["stream-west.orders"]
    start_of_a_task(monkeypatch, "refused-streams-notifier")
    assert "refused-streams-notifier" in declarations.dags()


def test_every_dag_of_the_dag_processor_is_found_by_the_worker_that_starts_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the task would fail with "Dag not found"."""
    for kind in ("leases", "tickets", "tokens"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "odd name.yaml").write_text("paths: 1")
    (tmp_path / "streams").mkdir()
    found = [
        streams(tmp_path / "streams", monkeypatch),
        Declarations("leases", tmp_path / "leases", monkeypatch),
        Declarations("tickets", tmp_path / "tickets", monkeypatch),
        Declarations("tokens", tmp_path / "tokens", monkeypatch),
    ]
    (tmp_path / "leases" / "prod.yaml").write_text("paths: [/data]")
    (tmp_path / "tickets" / "prod.yaml").write_text("")
    (tmp_path / "tokens" / "prod.yaml").write_text("users: [etl]")
    (tmp_path / "tickets" / "dev.yaml").write_text("folder: 1")
    count = 0
    for declarations in found:
        for dag_id in declarations.dags():
            with pytest.MonkeyPatch.context() as of_the_task:
                start_of_a_task(of_the_task, dag_id)
                assert dag_id in declarations.dags()
            count += 1
    assert count == 25
