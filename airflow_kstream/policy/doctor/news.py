"""What a report has that the one before had not, and what it has no longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_kstream.model.finding import DoctorReport, Finding, Severity, check_of

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
