"""A declaration that can't be read costs no other its DAG, whichever shipped file reads it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_kstream.demo.ground import DAGS

STREAM = "{name: orders, credentials: {mode: ticket}, application: /jobs/orders.py, checkpoints: [/c]}"


@pytest.mark.parametrize(
    ("file", "variable", "folder", "good", "whole"),
    [
        ("kstream_streams.py", "KSTREAM_STREAMS", "prod", STREAM, "stream-orders"),
        ("kstream_leases.py", "KSTREAM_LEASES", "", "paths: [/data]", "leases-orders"),
        ("kstream_tickets.py", "KSTREAM_TICKETS", "", "", "tickets-orders"),
    ],
)
def test_what_is_no_text_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, variable: str, folder: str, good: str, whole: str
) -> None:
    declarations = tmp_path / folder
    declarations.mkdir(exist_ok=True)
    (declarations / "orders.yaml").write_text(good)
    (declarations / "latin.yaml").write_bytes("# für die Nacht".encode("latin-1"))
    (declarations / "folder.yaml").mkdir()
    monkeypatch.setenv(variable, str(tmp_path))
    made = runpy.run_path(str(DAGS / file))
    names = {value.dag_id for value in made.values() if isinstance(value, DAG)}
    assert whole in names
    assert len([name for name in names if name.startswith("refused-")]) == 2
