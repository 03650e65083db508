"""The sightings of signatures in scanned logs: marks with their moments, without those that noise explains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from airflow_kstream.model.log_scan.sections import Hit, MatchedLines
from airflow_kstream.model.logs.diagnosis import Mark, Sighting
from airflow_kstream.model.logs.log_line import head_of, level_of
from airflow_kstream.model.logs.signature import Catalogue, Signature, SignatureKind
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.policy.triage.sources import WrittenSection

# Tasks are tried four times (spark.task.maxFailures), counted from 0. A lost executor has a line of its own, too.
_TRIED_AGAIN = re.compile(r"\bWARN .{0,80}TaskSetManager.{0,20}Lost task [0-9]+\.[0-2] (?!.*ExecutorLost)")


def sightings_of(written: Iterable[WrittenSection], catalogue: Catalogue) -> list[Sighting]:
    """Return what was seen of each signature in each log, the noise itself left out."""
    noise = catalogue.of_kind(SignatureKind.NOISE)
    return [sighting for each in written for sighting in _of_section(each, catalogue, noise.values())]


def mark_of(hit: Hit, written: WrittenSection) -> Mark:
    """Return a hit with its record's moment and level; what looks like a secret in it is masked."""
    head = head_of(hit.head or hit.line, written.zone or UTC, written.year)
    when, level = (head.when, head.level) if head else (None, "")
    level = level or level_of(hit.line)
    return Mark(written.source, hit.number, without_secrets(hit.line), when, level, hit.head_number or hit.number)


def in_order(mark: Mark) -> tuple[bool, datetime | None, str, int]:
    """Return a key by moments; a mark without one comes after all others."""
    return (mark.when is None, mark.when, mark.source.file, mark.line) if mark.when else (True, None, "", mark.line)


def _of_section(written: WrittenSection, catalogue: Catalogue, noise: Iterable[Signature]) -> Iterable[Sighting]:
    quiet = _quiet_records(written, catalogue)
    noises = tuple(noise)
    for name, found in written.section.found.items():
        signature = catalogue.signatures.get(name)
        if signature is None or signature.kind is SignatureKind.NOISE:
            continue
        hits = [hit for hit in found.kept if hit.head_number not in quiet and signature.counts_under(hit.head)]
        if signature.kind is SignatureKind.CONSEQUENCE:
            # One line may name a cause and what a client usually says.
            hits = [hit for hit in hits if not _is_noise(hit, noises) and not _is_tried_again(hit, written)]
        if hits:
            marks = tuple(mark_of(hit, written) for hit in hits)
            yield Sighting(name, marks, _count(found, hits), _gap(found, marks))


def _gap(found: MatchedLines, marks: Sequence[Mark]) -> tuple[Mark, Mark] | None:
    if found.count <= len(found.kept):
        return None
    border = found.first[-1].number
    before, after = [mark for mark in marks if mark.line <= border], [mark for mark in marks if mark.line > border]
    return (before[-1], after[0]) if before and after else None


def _quiet_records(written: WrittenSection, catalogue: Catalogue) -> set[int]:
    return {
        hit.head_number
        for name, found in written.section.found.items()
        if (signature := catalogue.signatures.get(name)) and signature.whole_record
        for hit in found.kept
        if hit.head_number
    }


def _is_noise(hit: Hit, noises: Sequence[Signature]) -> bool:
    return any(signature.matches(hit.line) for signature in noises)


def _is_tried_again(hit: Hit, written: WrittenSection) -> bool:
    """Return whether a task says it that Spark tries again: the last time it fails, an error tells that."""
    return written.section.tail_at > hit.number and _TRIED_AGAIN.search(hit.head) is not None


def _count(found: MatchedLines, hits: Sequence[Hit]) -> int:
    """Return the number of hits; where some were noise, of those that were kept."""
    return found.count if len(hits) == len(found.kept) else len(hits)
