"""How results are printed: for people before a terminal, and for programs that read a line at a time."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from airflow_kstream.cli.output import forgiving_output, is_read, show
from airflow_kstream.cli.stream_status import _screen, _Seen
from airflow_kstream.supervise.streams.look.verdict import Verdict

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


def test_a_reader_that_has_gone_is_noticed() -> None:
    reads, writes = os.pipe()
    with os.fdopen(writes, "w") as pipe, redirect_stdout(pipe), forgiving_output():
        print("read", flush=True)
        was_read = is_read()
        os.close(reads)
        print("not read", flush=True)
        gone = is_read()
    assert (was_read, gone) == (True, False)


def test_a_terminal_keeps_one_table_and_the_last_one_is_left_whole() -> None:
    """It is higher than the terminal: while streams are watched, its first rows are shown."""
    written = StringIO()
    # Whatever terminal runs the tests: a dumb one moves no cursor.
    terminal = {"TERM": "xterm"}
    console = Console(force_terminal=True, width=120, height=12, file=written, legacy_windows=False, _environ=terminal)
    verdicts = {f"s{number:03}": Verdict(None, "nothing is known") for number in range(50)}
    with _screen(console) as show_look:
        for second in (1, 2):
            show_look(_Seen(verdicts, at=datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)))
        while_watched = written.getvalue()
    left = written.getvalue().removeprefix(while_watched)
    assert while_watched.count("s001") == 2
    assert "s049" not in while_watched
    assert "\x1b[1A" in while_watched
    assert left.count("s001") == left.count("s049") == 1
    assert "\x1b[?25l" not in while_watched.rpartition("\x1b[?25h")[2]
