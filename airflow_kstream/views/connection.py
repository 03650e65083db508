"""The probes of a connection as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from airflow_kstream.supervise.doctor.connection import ProbeOutcome, ProbeResult
from airflow_kstream.views.tables import add, cell, table

_STYLES = {ProbeOutcome.PASSED: "green", ProbeOutcome.WARNING: "yellow", ProbeOutcome.FAILED: "red"}


def command_lines(results: Iterable[ProbeResult]) -> Iterator[str]:
    """Yield the commands of all probes, to be copied as they are."""
    for result in results:
        if result.commands:
            yield f"{result.name}: its owner, or HDFS's superuser, runs"
            yield from (f"  {command}" for command in result.commands)


def probes_table(results: Iterable[ProbeResult]) -> Table:
    """Return a row for each probe, in the order in which they were made."""
    rows = table("probe", "", "finding")
    for result in results:
        add(rows, result.name, cell(result.outcome, style=_STYLES[result.outcome]), result.detail)
    return rows
