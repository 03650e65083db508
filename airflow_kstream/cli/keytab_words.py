"""Checked keytabs as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.model.keytab import KeytabFinding, Severity
from airflow_kstream.supervise.keytab_check import KeytabCheck

_HEADINGS = ("keytab", "finding", "remedy", "streams", "when")
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def checks_table(checks: Sequence[KeytabCheck]) -> Table:
    """A row for each finding; one that says so for a keytab without any."""
    table = Table(*(Column(heading, overflow="fold") for heading in _HEADINGS), show_lines=True)
    for check in checks:
        whose = Text(f"{check.place.principal}\n{check.place.path}")
        streams = Text("\n".join(stream.stream for stream in check.streams))
        when = Text("\n".join(f"{stream.loss.dies_from:%m-%d %H:%M:%S}" for stream in check.streams if stream.loss))
        if not check.findings:
            table.add_row(whose, Text(f"works, kvno {check.kvno}", style="green"), "", streams, when)
        for number, finding in enumerate(check.findings):
            # What it costs stands with the worst of it.
            costs = (streams, when) if number == 0 else ("", "")
            table.add_row(whose if number == 0 else "", _words(finding), Text(finding.remedy), *costs)
    return table


def _words(finding: KeytabFinding) -> Text:
    return Text(f"{finding.severity}: {finding.words}", style=_STYLES[finding.severity])
