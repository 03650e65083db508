"""The probes of a connection as a table for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from airflow_kstream.supervise.doctor.connection import ProbeResult
from airflow_kstream.views.tables import add, cell, table

_RESULTS = {True: ("passed", "green"), False: ("failed", "red")}


def probes_table(results: Iterable[ProbeResult]) -> Table:
    """Return a row for each probe, in the order in which they were made."""
    rows = table("probe", "", "finding")
    for result in results:
        words, style = _RESULTS[result.passed]
        add(rows, result.name, cell(words, style=style), result.detail)
    return rows
