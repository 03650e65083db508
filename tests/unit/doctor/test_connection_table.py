"""The probes of a connection as a table: whole words at any width, and nothing in them is markup."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from airflow_kstream.supervise.doctor.connection import ProbeOutcome, ProbeResult
from airflow_kstream.views.doctor import probes_table


def test_a_narrow_table_folds_its_words_and_cuts_none() -> None:
    detail = "keytab [/etc/watcher.keytab]: its mode is 0644 :x: " + "x" * 90
    console = Console(file=StringIO(), width=80)
    console.print(probes_table([ProbeResult("SPNEGO and active ResourceManager", ProbeOutcome.FAILED, detail)]))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "failed" in printed
    assert "…" not in printed
    assert printed.count("x") >= 90
    assert "[/etc/watcher.keytab]" in printed.replace("\n", "")
