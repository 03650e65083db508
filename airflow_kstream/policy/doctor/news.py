"""What a report has that the one before had not, and what it has no longer; and a report without what a person
accepted, with a note on what nobody needs to accept any longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from airflow_kstream.model.declared import did_you_mean
from airflow_kstream.model.finding import (
    Acceptance,
    AcceptedFinding,
    Baseline,
    DoctorReport,
    Finding,
    Severity,
    check_of,
)
from airflow_kstream.policy.doctor.checks import CHECKS

_NAMES = [check.id for check in CHECKS]

# The streams that each finding concerned, by its id; a finding of the whole cluster concerns none by name.
Known = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class News:
    """The difference between two reports. `fresh` has findings that are new, or new for some streams: those alone.

    `gone` are the ids that are found no longer. `known` is what the next report is held against.
    """

    fresh: tuple[Finding, ...]
    gone: tuple[str, ...]
    known: Known

    @property
    def alarming(self) -> bool:
        """Return whether something is new that is more than a note."""
        return any(finding.severity is not Severity.NOTE for finding in self.fresh)


def news(report: DoctorReport, before: Known) -> News:
    """Hold a report against what was known before.

    A check that could not be decided now tells nothing: what it found before is known still, and neither new nor gone.
    """
    undecided = {one.check for one in report.undecided}
    now = {finding.id: frozenset(finding.streams) for finding in report.findings}
    silent = {key: streams for key, streams in before.items() if key not in now and check_of(key) in undecided}
    fresh = tuple(one for finding in report.findings if (one := _fresh(finding, before)))
    gone = tuple(sorted(before.keys() - now.keys() - silent.keys()))
    return News(fresh, gone, {**silent, **now})


def _fresh(finding: Finding, before: Known) -> Finding | None:
    if finding.id not in before:
        return finding
    concerns = tuple(concern for concern in finding.concerns if concern.stream not in before[finding.id])
    return replace(finding, concerns=concerns) if concerns else None


def known_to_json(known: Known) -> dict[str, list[str]]:
    """Return plain data."""
    return {key: sorted(streams) for key, streams in known.items()}


def known_from_json(data: object) -> Known:
    """Read what `known_to_json` wrote; anything else counts as nothing that was known."""
    if not isinstance(data, Mapping):
        return {}
    return {str(key): frozenset(map(str, names)) for key, names in data.items() if isinstance(names, list)}


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
