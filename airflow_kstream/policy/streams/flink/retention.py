"""Which states of dead generations nobody goes back to, and which open files a running job will not touch again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from airflow_kstream.model.streams.flink_job import FlinkCheckpoints, job_of
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec

# The JobManager's clock tells restarts, and the NameNode's when a file was looked at: Kerberos lets them differ.
CLOCKS = timedelta(minutes=5)
# The first checkpoint after a restart may still be of what was in flight before it.
_SINCE = 2


def superseded(stream: StreamId, claims: Sequence[Claim], keep: int) -> tuple[Claim, ...]:
    """Return the generations whose checkpoints and savepoints may go. `claims` are the newest, in descending order.

    A generation counts for `keep` once another one began with what it left: it has completed a checkpoint then, and
    those that completed nothing push nobody out. The newest `keep` of these stay with all that came after the oldest
    of them, and so does the one with which the newest spec began: the way back to the former spec starts there.
    Nothing of an adopted job is ever deleted.
    """
    began_with = {resume.made_by for claim in claims if (resume := claim.start.resume) and resume.made_by is not None}
    kept = sorted(began_with, reverse=True)[:keep]
    if len(kept) < keep or not claims:
        return ()
    ways_back = tuple(_ways_back(claims))
    old = (claim for claim in claims if claim.generation < min(kept) and isinstance(claim.spec, FlinkStreamSpec))
    return tuple(claim for claim in old if claim.submitted_by_us and not _holds(stream, claim, ways_back))


def _holds(stream: StreamId, claim: Claim, states: Iterable[ResumePoint]) -> bool:
    """Return whether one of these states lies in the generation's folders: a person may have named it by its path."""
    return any(f"/{job_of(stream, claim)}/" in state.path for state in states)


def _ways_back(claims: Sequence[Claim]) -> Iterator[ResumePoint]:
    """Yield what the newest generation began with, and what the first one of its spec did."""
    same = list(takewhile(lambda claim: claim.spec_fingerprint == claims[0].spec_fingerprint, claims))
    for claim in (same[0], same[-1]):
        if claim.start.resume:
            yield claim.start.resume


def given_up_before(seen: FlinkCheckpoints, retained: Collection[int], *, others: bool) -> datetime | None:
    """Return the moment before which a file had to stop growing for the job to have given it up, None if none has been.

    A restart inside Flink goes on with the files that its checkpoint names, and forgets all others. So the job must
    have completed two checkpoints since then, and none that is `retained`, by its number, may be older: a start from
    such a one would want the file as it was. `others` is whether older checkpoints or savepoints lie elsewhere.

    A file's writer may also be the job itself, which resumed it and has nothing to write, or whose tasks in another
    region of its graph went on: then the close costs it a restart, and no row, because a checkpoint names the length up
    to which a file counts.
    """
    resumed = seen.resumed_from
    if resumed is None or others or not retained or min(retained) <= resumed.number:
        return None
    return resumed.at - CLOCKS if seen.completed_since_restart >= _SINCE else None
