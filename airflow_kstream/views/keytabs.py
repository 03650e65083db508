"""Checked keytabs as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import KeytabFinding
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck
from airflow_kstream.views.tables import add, cell, table

_HEADINGS, _COSTS = ("keytab", "finding", "remedy"), ("streams", "when")
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def checks_table(checks: Sequence[KeytabCheck]) -> Table:
    """Return a row for each finding, and one that says so for a keytab without any.

    The columns about streams are there only if one is affected.
    """
    costs = _COSTS if any(check.streams for check in checks) else ()
    rows = table(*_HEADINGS, *costs, lines=True)
    for check in checks:
        whose = cell(*filter(None, (check.place.principal, check.place.path)))
        # The affected streams stand beside the worst finding.
        its_costs = _streams(check) if costs else ()
        if not check.findings:
            add(rows, whose, cell(f"works, kvno {check.kvno}", style="green"), "", *its_costs)
        for number, finding in enumerate(check.findings):
            first = (whose, its_costs) if number == 0 else ("", ())
            add(rows, first[0], _words(finding), finding.remedy, *first[1])
    return rows


def _streams(check: KeytabCheck) -> tuple[Text, Text]:
    when = (f"{stream.loss.dies_from:%m-%d %H:%M:%S}" for stream in check.streams if stream.loss)
    return cell(*(stream.stream for stream in check.streams)), cell(*when)


def _words(finding: KeytabFinding) -> Text:
    return cell(f"{finding.severity}: {finding.words}", style=_STYLES[finding.severity])
