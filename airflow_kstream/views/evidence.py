"""Evidence of a stall as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.supervise.streams.pulse.evidence import Evidence

_FRAMES = 6
_NOTHING = "nothing stood still: no task, and no query, was at the same place in each dump"


def evidence_lines(found: Evidence) -> Iterator[str]:
    """Yield what hangs, each with its innermost frames; then what could not be taken, and where all of it lies."""
    for each in found.still.hanging:
        yield str(each)
        yield from (f"    at {frame}" for frame in each.thread.frames[:_FRAMES])
    if found.dumped and not found.still.hanging:
        yield _NOTHING
    yield from (f"not taken: {why}" for why in found.missing)
    yield f"kept on HDFS in {found.folder}"
