"""The causes among what was seen: which were active at the end, and which of them another one explains.

The rules, in their order. A cause that its log says nothing of in the last `fresh` before the end was over by then,
unless it leads to one that was not. Without an end in the logs, what the job's work outlived was over. One that was
first seen after the end is not a cause of it, except that a driver tells why an executor ended only after that, and
that an end is announced before its cause is printed, which may have no moment. One that another cause leads to, which
was seen no later, is that one's consequence. A weak one counts only if no other is left."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from airflow_kstream.model.logs.diagnosis import LogSource, Mark, Role, Sighting
from airflow_kstream.model.logs.signature import Catalogue, Signature, SignatureKind
from airflow_kstream.policy.triage.relations import related
from airflow_kstream.policy.triage.sightings import in_order

WORKERS = frozenset({Role.EXECUTOR, Role.TASKMANAGER})
_NO_TIME = timedelta()
# An id of the catalogue, and what tells one query of Spark's, or one job of Flink's, from another.
_QUERY_STARTED, _WORKER = "query-started", re.compile(r"\[id = [0-9a-f-]+|for job [0-9a-f]+")


@dataclass(frozen=True)
class TriagePolicy:
    """The limits of the rules. `skew` is what clocks of two hosts may differ by.

    A cause that was seen within `at_end` before the end was active until then; one that was seen within `fresh` still
    counts if none was. Ends within `together` of the last one are one end. A cause may stand `below` an end, so many
    lines at most, where it has no moment. An unknown trouble after which the job worked for `outlived` is over. `lines`
    and `templates` limit what is shown.
    """

    skew: timedelta = timedelta(seconds=2)
    at_end: timedelta = timedelta(minutes=1)
    fresh: timedelta = timedelta(minutes=15)
    together: timedelta = timedelta(minutes=2)
    below: int = 100
    outlived: timedelta = timedelta(minutes=30)
    lines: int = 10
    templates: int = 5


@dataclass(frozen=True)
class Sightings:
    """All sightings of one signature: its marks in their order, and how many lines there were in how many logs.

    Between the two marks of each of `gaps` there were others, which were not kept.
    """

    name: str
    signature: Signature
    marks: tuple[Mark, ...]
    count: int
    logs: int
    gaps: tuple[tuple[Mark, Mark], ...] = ()

    @property
    def first(self) -> Mark:
        return self.marks[0]

    @property
    def began(self) -> Mark:
        """Return its first mark at the moment at which it had begun, if its line tells for how long it had gone on."""
        first = self.first
        if first.when is None or not self.signature.lasted:
            return first
        return replace(first, when=first.when - self.signature.duration_in(first.text))

    @property
    def last(self) -> Mark:
        """Return the latest mark with a moment, or the last of all."""
        return next((mark for mark in reversed(self.marks) if mark.when), self.marks[-1])


def all_seen(sightings: Iterable[Sighting], catalogue: Catalogue) -> dict[str, Sightings]:
    """Return what was seen, by signature; signatures that consist of others are seen where all of these are."""
    by_name: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        by_name.setdefault(sighting.signature, []).append(sighting)
    seen = {name: _together(name, catalogue.signatures[name], found) for name, found in by_name.items()}
    seen = {name: each for name, each in seen.items() if each.count >= each.signature.count}
    for name, signature in catalogue.signatures.items():
        if signature.all_of and (marks := _composed(signature, seen)):
            seen[name] = Sightings(name, signature, marks, len(marks), len({mark.source for mark in marks}))
    return seen


def end_of(seen: Mapping[str, Sightings], policy: TriagePolicy) -> Mark | None:
    """Return the first mark of the last end that the logs show, None if they show none."""
    marks = [mark for each in seen.values() if each.signature.ends for mark in each.marks if is_of_application(mark)]
    if not marks:
        return None
    ordered = sorted(marks, key=in_order)
    last = max((mark.when for mark in ordered if mark.when), default=None)
    if last is None:
        return ordered[0]
    return next(mark for mark in ordered if mark.when and mark.when >= last - policy.together)


def outlived(seen: Mapping[str, Sightings], until: datetime | None) -> frozenset[str]:
    """Return what the job, which worked `until` then, outlived by longer than it takes to lead to anything."""
    return frozenset(name for name, each in seen.items() if until and _is_outlived(each, until))


def worked_until(seen: Mapping[str, Sightings]) -> datetime | None:
    """Return the moment of the last progress that the logs show, None if they show none.

    None also of several queries or jobs in one application: another one may work than the one in trouble.
    """
    works = [each for each in seen.values() if each.signature.kind is SignatureKind.PROGRESS]
    told = [*works, *([seen[_QUERY_STARTED]] if _QUERY_STARTED in seen else [])]
    if len({found[0] for each in told for mark in each.marks if (found := _WORKER.search(mark.text))}) > 1:
        return None
    return max((mark.when for each in works for mark in each.marks if mark.when), default=None)


def _is_outlived(each: Sightings, until: datetime) -> bool:
    within = each.signature.within
    dated = [mark.when for mark in each.marks if mark.when]
    return within is not None and len(dated) == len(each.marks) and max(dated) + within < until


def is_of_application(mark: Mark) -> bool:
    """Return whether a line is about an application: a daemon's own end is none of one."""
    return not mark.source.role.is_daemon or "application" in mark.text or "appattempt" in mark.text


@dataclass(frozen=True)
class Causes:
    """The causes of an end: the `roots`, best first; those `explained` by them; and those that were `over` by then."""

    roots: tuple[Sightings, ...] = ()
    explained: tuple[Sightings, ...] = ()
    over: tuple[Sightings, ...] = ()


def causes_of(seen: Mapping[str, Sightings], end: Mark | None, past: Container[str], policy: TriagePolicy) -> Causes:
    """Return the causes among what was seen, those that are `past` as over. Without an end all the others count."""
    causes = [each for each in seen.values() if each.signature.kind is SignatureKind.CAUSE]
    active = [each for each in causes if each.name not in past and _is_active(each, end, policy.fresh, policy)]
    # What led to an active one counts, however long ago it was.
    counted = _with_origins(active, causes, policy)
    strong = [each for each in counted if not each.signature.weak]
    explained = {
        each.name
        for each in counted
        if any(_explains(other, each, seen, policy) for other in counted if other.name != each.name)
    }
    roots = _dated([each for each in strong if each.name not in explained])
    roots = roots or strong or [each for each in counted if each.name not in explained] or counted
    by_end = [each for each in roots if _is_active(each, end, policy.at_end, policy) or _leads(each, active, policy)]
    roots = sorted(by_end or roots, key=_rank)
    named = {each.name for each in roots}
    rest = [each for each in counted if each.name not in named]
    over = [each for each in causes if each not in counted and not each.signature.weak]
    return Causes(tuple(roots), tuple(sorted(rest, key=_rank)), tuple(sorted(over, key=_rank)))


def _dated(causes: Sequence[Sightings]) -> list[Sightings]:
    """Leave out what was seen in no record while others were in the same log: a text that quotes messages is none."""
    sources = {each.first.source for each in causes if each.first.when}
    return [each for each in causes if each.first.when or each.first.source not in sources]


def not_after(first: Mark, second: Mark, skew: timedelta = _NO_TIME) -> bool:
    """Return whether the first mark is no later than the second, as far as their moments and files tell."""
    if first.source == second.source and first.record == second.record:
        # One record tells of both at once, in an order of its own.
        return True
    if first.when and second.when:
        return first.when <= second.when + skew
    return first.source != second.source or first.line <= second.line


def _together(name: str, signature: Signature, sightings: Sequence[Sighting]) -> Sightings:
    marks = sorted((mark for sighting in sightings for mark in sighting.marks), key=in_order)
    gaps = tuple(each.gap for each in sightings if each.gap)
    return Sightings(name, signature, tuple(marks), sum(each.count for each in sightings), len(sightings), gaps)


def _composed(signature: Signature, seen: Mapping[str, Sightings]) -> tuple[Mark, ...]:
    """Return the marks of the part that proves it: of the last cause among its parts, or of the last part."""
    if any(part not in seen for part in signature.all_of) or any(part in seen for part in signature.none_of):
        return ()
    parts = [seen[part] for part in signature.all_of]
    proof = next((part for part in reversed(parts) if part.signature.kind is SignatureKind.CAUSE), parts[-1])
    others = [part for part in parts if part is not proof]
    told = [*others, *(seen[name] for name in signature.told_by if name in seen)]
    marks = related(signature.relation, proof.marks, [mark for part in told for mark in part.marks])
    if signature.within_lines is None:
        return marks
    borders = _Lines([seen[name] for name in signature.not_across if name in seen])
    near = [_Lines([part]) for part in others]
    return tuple(
        mark for mark in marks if all(_is_near(mark, lines, signature.within_lines, borders) for lines in near)
    )


class _Lines:
    """The lines of sightings by their logs, in order, and where others of them were not kept."""

    def __init__(self, sightings: Sequence[Sightings]) -> None:
        self.at: dict[LogSource, list[int]] = {}
        self.gaps: dict[LogSource, list[tuple[int, int]]] = {}
        for each in sightings:
            for mark in each.marks:
                self.at.setdefault(mark.source, []).append(mark.line)
            for before, after in each.gaps:
                self.gaps.setdefault(before.source, []).append((before.line, after.line))
        for lines in self.at.values():
            lines.sort()

    def nearest(self, mark: Mark) -> Sequence[int]:
        """Return the last line above the mark, and the first at or below it."""
        lines = self.at.get(mark.source, [])
        place = bisect_left(lines, mark.line)
        return lines[max(place - 1, 0) : place + 1]

    def may_part(self, mark: Mark, line: int) -> bool:
        """Return whether one of the lines is between the two, the later one included, or may be."""
        first, last = sorted((mark.line, line))
        lines = self.at.get(mark.source, [])
        gaps = self.gaps.get(mark.source, ())
        return bisect_right(lines, first) < bisect_right(lines, last) or any(
            before < last and first < after for before, after in gaps
        )


def _is_near(mark: Mark, others: _Lines, within: int, borders: _Lines) -> bool:
    """Return whether one of the others is so near. What parts a mark from the nearest parts it from the rest, too."""
    near = (line for line in others.nearest(mark) if abs(line - mark.line) <= within)
    return any(not borders.may_part(mark, line) for line in near)


def _is_active(each: Sightings, end: Mark | None, within: timedelta, policy: TriagePolicy) -> bool:
    """Return whether it was seen within that time before the end, and not for the first time after it."""
    if end is None or _is_printed_below(each.first, end, policy.below):
        return True
    later = _later(each.first, end, policy)
    if not not_after(each.began, end, later):
        return False
    if end.when is None:
        return True
    last = _last_before(each.marks, end.when + later)
    return last is None or last >= end.when - within or any(_is_across(gap, end.when) for gap in each.gaps)


def _is_across(gap: tuple[Mark, Mark], when: datetime) -> bool:
    """Return whether lines that were not kept may be right before that moment."""
    before, after = (mark.when for mark in gap)
    return before is not None and after is not None and before <= when < after


def _is_printed_below(mark: Mark, end: Mark, lines: int) -> bool:
    """Return whether it may be of the announcement of an end: Spark and Flink say that it failed, and then why.

    A line without a moment has that of what it was printed with, which is above it.
    """
    undated = mark.when is None and mark.source == end.source
    return undated and end.line < mark.line <= end.line + lines


def _later(mark: Mark, end: Mark, policy: TriagePolicy) -> timedelta:
    """Return how long after an end a line may tell of its cause: a driver learns of a container when that is over."""
    by_other = end.source.role in WORKERS and mark.source.role not in WORKERS
    return policy.together if by_other else policy.skew


def _last_before(marks: Sequence[Mark], when: datetime) -> datetime | None:
    """Return the last moment no later than that; None if a mark has none, which may have been at any."""
    if any(mark.when is None for mark in marks):
        return None
    return max((mark.when for mark in marks if mark.when and mark.when <= when), default=None)


def _with_origins(active: Sequence[Sightings], causes: Sequence[Sightings], policy: TriagePolicy) -> list[Sightings]:
    counted = list(active)
    while more := [each for each in causes if each not in counted and _leads(each, counted, policy)]:
        counted += more
    return counted


def _leads(each: Sightings, others: Iterable[Sightings], policy: TriagePolicy) -> bool:
    return any(_leads_to(each, other, policy) for other in others if other.name != each.name)


def _leads_to(each: Sightings, other: Sightings, policy: TriagePolicy) -> bool:
    """Return whether the catalogue says that it leads to the other one, and both came in that order and in time."""
    if other.name not in each.signature.leads_to or not not_after(each.began, other.first, policy.skew):
        return False
    within = each.signature.within
    if within is None or not (each.last.when and other.first.when):
        return True
    return other.first.when <= each.last.when + within


def _explains(each: Sightings, other: Sightings, seen: Mapping[str, Sightings], policy: TriagePolicy) -> bool:
    """Return whether it leads to the other one, over others that were seen as well; a strong one explains weak ones."""
    if other.signature.weak and not each.signature.weak:
        return True
    if _leads_to(other, each, policy) and not not_after(each.first, other.first):
        return False
    return _reaches(each, other, seen, policy, frozenset())


def _reaches(
    each: Sightings, other: Sightings, seen: Mapping[str, Sightings], policy: TriagePolicy, passed: frozenset[str]
) -> bool:
    if _leads_to(each, other, policy):
        return True
    passed |= {each.name}
    steps = (seen[name] for name in each.signature.leads_to if name in seen and name not in passed)
    return any(_leads_to(each, step, policy) and _reaches(step, other, seen, policy, passed) for step in steps)


def _rank(each: Sightings) -> tuple[object, ...]:
    """Put what was seen first before what came later, and logs of applications before those of daemons."""
    return (each.first.source.role.is_daemon, in_order(each.first))
