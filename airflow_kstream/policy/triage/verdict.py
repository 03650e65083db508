"""The verdict on logs: one cause with its evidence, or that it is unknown, never a guess that sounds certain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from airflow_kstream.model.logs.diagnosis import (
    Confidence,
    Diagnosis,
    DiagnosisOutcome,
    LogSource,
    Mark,
    Role,
    ScanExtent,
    Step,
    Template,
)
from airflow_kstream.model.logs.signature import Catalogue, SignatureKind
from airflow_kstream.policy.triage.causes import (
    WORKERS,
    Causes,
    Sightings,
    TriagePolicy,
    all_seen,
    causes_of,
    end_of,
    is_of_application,
    not_after,
    outlived,
    worked_until,
)
from airflow_kstream.policy.triage.relations import with_values
from airflow_kstream.policy.triage.sightings import in_order, sightings_of
from airflow_kstream.policy.triage.sources import ScannedLog, masters_until, written_sections
from airflow_kstream.policy.triage.templates import templates_of

_DEFAULT = TriagePolicy()
_ELSEWHERE = (
    "these logs show consequences only; look at the log of the driver, the container whose id ends with _000001: "
    "`yarn logs -applicationId APPLICATION` has it, or its node's yarn.nodemanager.log-dirs for a while"
)
# Ids of the catalogue.
_SIGTERM, _STOPPED = "sigterm", "context-stopped"
_FLINK_JOB = re.compile(r"\bJob (?:.{0,200}\()?([0-9a-f]{32})\b")
_SHOWN = {SignatureKind.CAUSE, SignatureKind.CONSEQUENCE, SignatureKind.SUCCESS}


def diagnose(
    logs: Iterable[ScannedLog],
    catalogue: Catalogue,
    zone: tzinfo | None = None,
    policy: TriagePolicy = _DEFAULT,
    unread: Sequence[str] = (),
    runs: bool = False,
) -> Diagnosis:
    """Return the verdict on the logs of one application, with those of daemons beside them or not.

    `zone` is that of writers whose logs don't say theirs, as `written_sections` takes it; `unread` names what could not
    be read; `runs` is whether the application has not ended, so that an unknown line of trouble is not a failure.
    """
    written = written_sections(logs, zone)
    seen = all_seen(sightings_of(written, catalogue), catalogue)
    worked = worked_until(seen)
    past = outlived(seen, worked)
    end = end_of({name: each for name, each in seen.items() if name not in past}, policy)
    if end:
        # What matters then is what was active at the end.
        worked, past = None, frozenset()
    causes = causes_of(seen, end, past, policy)
    files = {each.source.file for each in written}
    scanned = ScanExtent(
        len(files),
        sum(each.section.lines for each in written),
        sum(each.section.size for each in written),
        tuple(unread),
    )
    templates = templates_of(written, catalogue, policy.templates, worked and worked - policy.outlived)
    facts = _Facts(seen, end, past, causes, templates, scanned, policy, masters_until(written))
    if _succeeded(seen, policy):
        return Diagnosis(
            DiagnosisOutcome.FINE, timeline=facts.timeline(), earlier=facts.steps(causes.roots), scanned=scanned
        )
    if causes.roots:
        return facts.named()
    return facts.unnamed(runs)


def as_stopped(diagnosis: Diagnosis, words: str) -> Diagnosis:
    """Return the verdict on an application that its supervisor stopped, which `words` say.

    A cause stays, since it may be why it was stopped. The unexplained end is the stop.
    """
    if diagnosis.outcome is DiagnosisOutcome.UNKNOWN:
        return replace(diagnosis, outcome=DiagnosisOutcome.FINE, templates=(), hint=words)
    return replace(diagnosis, hint=words)


@dataclass(frozen=True)
class _Facts:
    """All that a verdict is made of."""

    seen: Mapping[str, Sightings]
    end: Mark | None
    past: frozenset[str]
    causes: Causes
    templates: tuple[Template, ...]
    scanned: ScanExtent
    policy: TriagePolicy
    masters_until: datetime | None

    def named(self) -> Diagnosis:
        root, *others = self.causes.roots
        confidence = self._confidence(root, others)
        return Diagnosis(
            DiagnosisOutcome.CAUSE,
            cause=root.name,
            signature=with_values(root.signature, root.first),
            confidence=confidence,
            evidence=root.first,
            chain=self._chain(root),
            timeline=self.timeline(),
            others=self.steps(others),
            earlier=self.steps(self.causes.over),
            templates=self.templates if confidence is Confidence.LOW else (),
            scanned=self.scanned,
        )

    def unnamed(self, runs: bool) -> Diagnosis:
        # What a daemon's clients leave in its log is not an end of theirs.
        felt = [each for each in self._consequences() if each.name not in self.past]
        consequences = [each for each in felt if any(self._ends_it(mark) for mark in each.marks)]
        ended = self.end is not None and self._ends_it(self.end)
        if self._was_asked_to_end():
            ended, consequences = False, []
        failed = not runs and bool(ended or consequences or any(_is_bad(each) for each in self.templates))
        no_driver = not any(mark.source.role is Role.DRIVER for each in self.seen.values() for mark in each.marks)
        return Diagnosis(
            DiagnosisOutcome.UNKNOWN if failed else DiagnosisOutcome.FINE,
            timeline=self.timeline(),
            earlier=self.steps(self.causes.over),
            templates=self.templates if failed else (),
            hint=_ELSEWHERE if consequences and no_driver else "",
            scanned=self.scanned,
        )

    def _was_asked_to_end(self) -> bool:
        """Return whether it got SIGTERM, which alone ended it, and stopped its context in order after that."""
        ends = {each.name for each in self.seen.values() if each.signature.ends or each in self._consequences()}
        stopped = self.seen.get(_STOPPED)
        return stopped is not None and ends == {_SIGTERM} and not_after(self.seen[_SIGTERM].first, stopped.last)

    def _ends_it(self, mark: Mark) -> bool:
        """Return whether a line may be about the application's end: executors end while their driver goes on."""
        if mark.source.role in WORKERS and mark.when and self.masters_until:
            return mark.when >= self.masters_until - self.policy.together
        return is_of_application(mark)

    def _confidence(self, root: Sightings, others: Sequence[Sightings]) -> Confidence:
        """Return how sure the verdict is: a weak cause, and one of several that came at once, may be the wrong one."""
        if root.signature.weak:
            return Confidence.LOW
        if not others:
            # Without a moment of either, which came first is a guess.
            dated = self.end and (self.end.when or root.first.when)
            return Confidence.HIGH if dated else Confidence.MEDIUM
        together = [other for other in others if not_after(other.first, root.first, self.policy.at_end)]
        return Confidence.LOW if together else Confidence.MEDIUM

    def _chain(self, root: Sightings) -> tuple[str, ...]:
        """Return the cause, the causes that it explains, and the consequences, in the order in which they were seen."""
        causes = [each for each in self.causes.explained if not each.signature.weak and each.name != root.name]
        after = [each for each in self._consequences() if not_after(root.began, each.last, self.policy.skew)]
        ordered = (
            *sorted(causes, key=lambda each: in_order(each.began)),
            *sorted(after, key=lambda each: in_order(each.first)),
        )
        return (root.name, *(each.name for each in ordered))

    def _consequences(self) -> list[Sightings]:
        return [each for each in self.seen.values() if each.signature.kind is SignatureKind.CONSEQUENCE]

    def timeline(self) -> tuple[Step, ...]:
        """Return the first sighting of each signature, in their order; of too many the causes and the ends stay."""
        shown = [each for each in self.seen.values() if each.signature.kind in _SHOWN and each.signature.patterns]
        by_line: dict[tuple[LogSource, int], Sightings] = {}
        for each in sorted(shown, key=lambda each: (*_importance(each), in_order(each.first))):
            by_line.setdefault((each.first.source, each.first.line), each)
        important = list(by_line.values())[: self.policy.lines]
        return self.steps(sorted(important, key=lambda each: in_order(each.first)))

    def steps(self, seen: Iterable[Sightings]) -> tuple[Step, ...]:
        return tuple(
            Step(
                each.name,
                each.signature.title,
                each.signature.kind.value,
                each.first,
                each.logs,
                each.count,
                each.last.when if each.last != each.first else None,
            )
            for each in seen
        )


def _importance(each: Sightings) -> tuple[bool, bool, bool]:
    kind = each.signature.kind
    strong = kind is SignatureKind.CAUSE and not each.signature.weak
    return (not strong, not each.signature.ends, kind is not SignatureKind.CAUSE)


def _is_bad(template: Template) -> bool:
    return template.first.level not in {"WARN", "WARNING", "NOTICE", "INFO", "DEBUG", "TRACE"}


def _succeeded(seen: Mapping[str, Sightings], policy: TriagePolicy) -> bool:
    """Return whether the last word on each end is one of success; what stops with it gets SIGTERM right after it.

    In a session of Flink's that of one job is none on another one.
    """
    successes = [mark for each in seen.values() if each.signature.kind is SignatureKind.SUCCESS for mark in each.marks]
    ends = [mark for each in seen.values() if each.signature.ends for mark in each.marks if _job(mark)]
    ends += [each.last for each in seen.values() if each.signature.ends]
    return bool(successes) and all(any(_settles(success, end, policy) for success in successes) for end in ends)


def _settles(success: Mark, end: Mark, policy: TriagePolicy) -> bool:
    others = _job(success) and _job(end) and _job(success) != _job(end)
    return not others and not_after(end, success, policy.together)


def _job(mark: Mark) -> str:
    """Return the id of the job of Flink's that the line is about; empty if it names none."""
    found = _FLINK_JOB.search(mark.text)
    return found[1] if found else ""
