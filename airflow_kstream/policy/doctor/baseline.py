"""What a person accepted, taken out of a report; what nobody needs to accept any longer, as a note."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from airflow_kstream.model.clusters.baseline import Acceptance, Baseline
from airflow_kstream.model.finding import AcceptedFinding, DoctorReport, Finding, check_of
from airflow_kstream.model.near_names import did_you_mean
from airflow_kstream.policy.doctor.checks import CHECKS

_NAMES = [check.id for check in CHECKS]


def without_accepted(report: DoctorReport, baseline: Baseline, today: date) -> DoctorReport:
    """Return the report with accepted findings apart.

    A finding that is accepted for some streams stays for the others. An acceptance that has ended counts no longer, and
    one that fits nothing is a note: it may hide the same finding when it comes back.
    """
    current = [one for one in baseline.accepted if today < one.ends]
    findings: list[Finding] = []
    accepted: list[AcceptedFinding] = []
    for finding in report.findings:
        left: Finding | None = finding
        for one in (one for one in current if one.finding == finding.id):
            taken, left = _split(left, one) if left else (None, None)
            accepted += [AcceptedFinding(taken, one.by, one.why, one.until)] if taken else []
        findings += [left] if left else []
    notes = (*report.notes, *_notes(report, baseline, today))
    return replace(report, findings=tuple(findings), accepted=tuple(accepted), notes=notes)


def _split(finding: Finding, acceptance: Acceptance) -> tuple[Finding | None, Finding | None]:
    """Return what is accepted of it, and what is left."""
    if not acceptance.streams:
        return finding, None
    taken = tuple(concern for concern in finding.concerns if concern.stream in acceptance.streams)
    left = tuple(concern for concern in finding.concerns if concern.stream not in acceptance.streams)
    if not taken:
        return None, finding
    return replace(finding, concerns=taken), replace(finding, concerns=left) if left else None


def _notes(report: DoctorReport, baseline: Baseline, today: date) -> Iterator[str]:
    found = {finding.id for finding in report.findings}
    undecided = {one.check for one in report.undecided}
    for one in baseline.accepted:
        if today >= one.ends:
            yield f"the acceptance of {one.finding} by {one.by} ended on {one.until}"
        elif (check := check_of(one.finding)) not in _NAMES:
            yield f"the baseline accepts {one.finding}: there is no check {check}{did_you_mean(check, _NAMES)}"
        elif one.finding not in found and check not in undecided:
            yield f"nothing is found any longer that {one.finding} accepts: remove it from the baseline"
