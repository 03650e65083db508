"""Where the next generation of a Flink stream begins: never with nothing, unless a person says so. And what nobody goes
back to any longer: states of dead generations, and open files of a running job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.flink_job import FlinkCheckpoint, FlinkCheckpoints, job_of
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.resume import NOTHING, ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec

if TYPE_CHECKING:
    from airflow_kstream.model.streams.observation import Observation

# The JobManager's clock tells restarts, and the NameNode's when a file was looked at: Kerberos lets them differ.
CLOCKS = timedelta(minutes=5)
# The first checkpoint after a restart may still be of what was in flight before it.
_SINCE = 2


def resume_point(observation: Observation, left: Sequence[FlinkCheckpoint]) -> ResumePoint:
    """Return where the next generation begins. `left` are the complete checkpoints and savepoints of the newest one.

    That is what a person said, or the newest of these or, where that one completed none, what it began with itself.

    Raises Conflict: with the way out, when nobody knows where the stream was left.
    """
    word, claim = observation.start_word, observation.claim
    drops = word is not None and word.drops_unmapped
    if word and word.fresh:
        return NOTHING
    if word and word.path:
        return ResumePoint(word.path, word.number, drops_unmapped=drops)
    if newest := max(left, key=lambda point: point.number, default=None):
        return ResumePoint(newest.path or "", newest.number, claim.generation if claim else None, drops)
    begun = claim.start.resume if claim else None
    if begun is None:
        raise Conflict(_unknown(observation), tried=f"find where {observation.stream.name} goes on")
    return ResumePoint(begun.path, begun.number, begun.made_by, drops or begun.drops_unmapped)


def gone(observation: Observation, point: ResumePoint, why: str) -> Conflict:
    """Return the refusal to begin with what is not there any longer."""
    name = observation.stream.name
    return Conflict(
        f"{point} is where {name} goes on, and {why}: nothing is started from nothing. Restore it, or say where it "
        f"starts: {ways_out(name)}",
        tried=f"find where {name} goes on",
    )


def undecided(observation: Observation, why: str) -> Conflict:
    """Return the refusal to go back to an older state than the last generation may have left."""
    name = observation.stream.name
    return Conflict(
        f"{why}. Nothing goes back to an older state by itself; say where it starts: {ways_out(name)}",
        tried=f"find where {name} goes on",
    )


def _unknown(observation: Observation) -> str:
    name = observation.stream.name
    if observation.claim is None:
        return f"nobody said where its first generation starts: {ways_out(name)}"
    return f"nobody knows where generation {observation.generation} was left: {ways_out(name)}"


def ways_out(name: str) -> str:
    """Return the commands with which a person says where the next generation starts."""
    return (
        f"`kstream streams start {name} --resume PATH` with a savepoint or checkpoint, or "
        f"`kstream streams start {name} --fresh` without any state"
    )


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
    """Return the moment before which a file must have stopped growing to count as given up; None if no file counts.

    A restart inside Flink goes on with the files that its checkpoint names, and forgets all others. So the job must
    have completed two checkpoints since then, and none that is `retained`, by its number, may be older: a start from
    such a one would want the file as it was. `others` is whether older checkpoints or savepoints lie elsewhere.

    A file's writer may also be the job itself, which resumed it and has nothing to write, or whose tasks in another
    region of its graph went on: then closing it costs the job a restart, but no row: a checkpoint names the length up
    to which a file counts.
    """
    resumed = seen.resumed_from
    if resumed is None or others or not retained or min(retained) <= resumed.number:
        return None
    return resumed.at - CLOCKS if seen.completed_since_restart >= _SINCE else None
