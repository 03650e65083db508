"""How results are printed: for people before a terminal, and for programs that read a line at a time."""

from __future__ import annotations

import pytest
from rich.table import Table

from airflow_kstream.cli.output import show

PATH = "/warehouse/orders/" + "/".join(f"day={day:02}" for day in range(1, 31)) + "/part-00000.parquet"


@pytest.fixture
def table() -> Table:
    table = Table("path", "kind", title="Open files")
    table.add_row(PATH, "stuck")
    return table


def test_a_row_in_a_pipe_is_one_line(
    table: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show(table)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if PATH in line]
    assert row.split() == ["│", PATH, "│", "stuck", "│"]


def test_a_person_may_want_it_narrower(
    table: Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    show(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) == 60
