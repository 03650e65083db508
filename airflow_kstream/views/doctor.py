"""The doctor's report and the probes of a connection, as tables and lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from airflow_kstream.model.finding import AcceptedFinding, Concern, DoctorReport, Finding, Severity, UndecidedCheck
from airflow_kstream.policy.doctor.check import Check
from airflow_kstream.supervise.doctor.connection import ProbeOutcome, ProbeResult
from airflow_kstream.views.tables import add, cell, table

_OF_A_PROBE = {ProbeOutcome.PASSED: "green", ProbeOutcome.WARNING: "yellow", ProbeOutcome.FAILED: "red"}
STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
# A finding of two hundred streams is one row: --json has all of them.
_SHOWN = 10


def findings_table(findings: Iterable[Finding]) -> Table:
    """Return a row for each finding, in their order."""
    rows = table("finding", "what will happen, and the proof", "who, and from when", "fix", "source", lines=True)
    for finding in findings:
        whose = _concerns(finding.concerns) if finding.concerns else ("the cluster",)
        add(
            rows,
            cell(finding.severity, finding.id, style=STYLES[finding.severity]),
            cell(finding.words, f"[{finding.proof}]"),
            cell(*whose),
            finding.fix,
            finding.source,
        )
    return rows


def checks_table(checks: Iterable[Check]) -> Table:
    """Return a row for each check: its question, and where its rule comes from."""
    rows = table("check", "question", "source")
    for check in checks:
        add(rows, check.id, check.question, check.source)
    return rows


def lines_of_report(report: DoctorReport) -> Iterator[Text]:
    """Yield what stands below the table: what was accepted and could not be asked, and how many checks passed."""
    for accepted in report.accepted:
        yield cell(_accepted(accepted), style="dim")
    for undecided in undecided_sentences(report.undecided):
        yield cell(undecided, style="magenta")
    for note in report.notes:
        yield cell(note, style="yellow")
    yield cell(f"{len(report.passed)} checks passed: {', '.join(report.passed)}", style="green")
    if report.idle:
        yield cell(f"{len(report.idle)} checks had no stream to look at: {', '.join(report.idle)}", style="dim")


def sentence(finding: Finding) -> str:
    """Return a finding as one line for a log or a message."""
    whose = f" ({'; '.join(_concerns(finding.concerns))})" if finding.concerns else ""
    return f"{finding.id}: {finding.words}{whose}. Fix: {finding.fix}. Proof: {finding.proof}. Source: {finding.source}"


def _concerns(concerns: tuple[Concern, ...]) -> tuple[str, ...]:
    shown = tuple(f"{concern.stream}: {concern.sentence}" for concern in concerns[:_SHOWN])
    more = len(concerns) - _SHOWN
    return (*shown, f"and {more} more") if more > 0 else shown


def _accepted(accepted: AcceptedFinding) -> str:
    return f"accepted until {accepted.until} by {accepted.by}: {accepted.finding.id}: {accepted.why}"


def undecided_sentences(undecided: Iterable[UndecidedCheck]) -> list[str]:
    """Return a line for each reason why checks could not be decided, with the missing right: a server that is away
    leaves most facts of all streams unknown."""
    causes: dict[tuple[str, str], list[UndecidedCheck]] = {}
    for one in undecided:
        causes.setdefault((one.fact.why, one.fact.right), []).append(one)
    return [_undecided_sentence(alike) for alike in causes.values()]


def _undecided_sentence(alike: Sequence[UndecidedCheck]) -> str:
    streams = _some(stream for one in alike for stream in one.streams)
    whose = f" ({streams})" if streams else ""
    fact = replace(alike[0].fact, what=_some(one.fact.what for one in alike))
    return f"{', '.join(dict.fromkeys(one.check for one in alike))}{whose}: {fact.sentence}"


def _some(names: Iterable[str]) -> str:
    """Return the first of these names, and how many more there are."""
    each = list(dict.fromkeys(names))
    more = len(each) - _SHOWN
    return ", ".join(each[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


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
        add(rows, result.name, cell(result.outcome, style=_OF_A_PROBE[result.outcome]), result.detail)
    return rows
