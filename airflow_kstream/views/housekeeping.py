"""What may go of a state_dir, and what went, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.supervise.streams.housekeeping import CleaningReport


def lines_of_cleaning(report: CleaningReport) -> Iterator[str]:
    """Yield a line for each file that may go, each stream that is gone, each folder that stays, and the sum."""
    if report.dry_run:
        for removal in report.removals:
            yield f"would remove {removal.path} ({removal.kind}: {removal.why})"
    for path, why in report.failed.items():
        yield f"could not remove {path}: {why}"
    for subject, why in report.gone.items():
        yield f"{subject} is gone: {why}"
    for subject, why in report.stays.items():
        yield f"{subject} stays: {why}"
    yield summary(report)


def summary(report: CleaningReport) -> str:
    """Return the sum in a sentence."""
    if report.dry_run:
        return f"{len(report.removals)} files would go; nothing was removed"
    left = f"; {len(report.failed)} could not be removed" if report.failed else ""
    return f"{len(report.removed)} of {len(report.removals)} files are removed{left}"
