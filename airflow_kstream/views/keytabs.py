"""Checked keytabs as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.model.keytab import KeytabFinding, Severity
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck

_HEADINGS, _COSTS = ("keytab", "finding", "remedy"), ("streams", "when")
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def checks_table(checks: Sequence[KeytabCheck]) -> Table:
    """A row for each finding; one that says so for a keytab without any. Of streams only where one is concerned."""
    costs = _COSTS if any(check.streams for check in checks) else ()
    table = Table(*(Column(heading, overflow="fold") for heading in (*_HEADINGS, *costs)), show_lines=True)
    for check in checks:
        whose = Text("\n".join(filter(None, (check.place.principal, check.place.path))))
        # What it costs stands with the worst of it.
        its_costs = _streams(check) if costs else ()
        if not check.findings:
            table.add_row(whose, Text(f"works, kvno {check.kvno}", style="green"), "", *its_costs)
        for number, finding in enumerate(check.findings):
            first = (whose, its_costs) if number == 0 else ("", ())
            table.add_row(first[0], _words(finding), Text(finding.remedy), *first[1])
    return table


def _streams(check: KeytabCheck) -> tuple[Text, Text]:
    when = (f"{stream.loss.dies_from:%m-%d %H:%M:%S}" for stream in check.streams if stream.loss)
    return Text("\n".join(stream.stream for stream in check.streams)), Text("\n".join(when))


def _words(finding: KeytabFinding) -> Text:
    return Text(f"{finding.severity}: {finding.words}", style=_STYLES[finding.severity])
