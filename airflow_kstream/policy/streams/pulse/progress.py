"""Whether a query has committed all that had arrived by a moment, and what proves it.

Nothing proves it while a person holds or stopped the stream, or while its progress is not known: somebody may repair or
restore it at this very moment, and its readers may get something else than its checkpoint shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.progress import (
    CommittedBatch,
    PartitionAt,
    ProgressCondition,
    Proof,
    QueryJudgement,
    StreamStanding,
    TopicsAt,
)
from airflow_kstream.model.streams.stall import Pulse

# The clocks of brokers, NameNodes and producers differ, and a batch's end is fixed before its plan is written.
SETTLES = timedelta(minutes=1)
# A client learns of a new partition within metadata.max.age.ms, five minutes by default.
DISCOVERS = timedelta(minutes=6)
_HANDS_OFF = {DesiredState.HELD, DesiredState.STOPPED}
_NO_PROGRESS = {Pulse.UNKNOWN, Pulse.CHANGED, Pulse.NO_CHECKPOINT}
_WELL = {Pulse.HEALTHY, Pulse.IDLE}
_NAMED = 3


def discounted(awaited: ProgressCondition, standing: StreamStanding) -> str:
    """Return why nothing that the stream's checkpoints show counts now; empty if it does."""
    if standing.desired.state in _HANDS_OFF:
        return f"it is {standing.desired.state.value}"
    if standing.pulse is None or standing.pulse in _NO_PROGRESS:
        return f"its progress is {standing.pulse or Pulse.UNKNOWN}: `kstream streams status {awaited.stream}` tells why"
    if standing.now < awaited.moment + SETTLES:
        return "the moment has not passed by a minute"
    return ""


def judged(
    awaited: ProgressCondition,
    standing: StreamStanding,
    point: Checkpoint,
    batch: CommittedBatch | None,
    topics: TopicsAt | None,
) -> QueryJudgement:
    """Return what proves that a query has come so far, of a stream that counts.

    With `topics` its offsets decide: a batch reads up to a limit that nobody may have declared, and quiet is a query
    that is blocked, too. What it reads beside Kafka, a later batch has read.
    """
    if batch is None:
        return QueryJudgement(None, "no batch is committed yet")
    if topics and (lacking := behind(awaited.moment, batch, topics)):
        return QueryJudgement(None, lacking)
    if topics and not batch.reads_more:
        names = ", ".join(sorted(batch.kafka))
        return QueryJudgement(Proof.OFFSETS, f"batch {batch.number} has reached the offsets that {names} had then")
    if batch.planned >= awaited.moment + SETTLES:
        return QueryJudgement(
            Proof.BATCH, f"batch {batch.number}, planned at {batch.planned.isoformat()}, is committed"
        )
    if since := _quiet_since(awaited, standing, point):
        return QueryJudgement(Proof.QUIET, f"no batch has come since {since.isoformat()}, and it is {standing.pulse}")
    return QueryJudgement(None, "no batch that was planned after it is committed yet")


def behind(moment: datetime, batch: CommittedBatch, topics: TopicsAt) -> str:
    """Return in words what the batch has not read of that which Kafka had at the moment; empty if it lacks nothing."""
    lacking = sorted(_lacking(moment, batch, topics))
    more = f" and {len(lacking) - _NAMED} more partitions" if len(lacking) > _NAMED else ""
    return f"it has not reached the offsets of then in {', '.join(lacking[:_NAMED])}{more}" if lacking else ""


def _lacking(moment: datetime, batch: CommittedBatch, topics: TopicsAt) -> Iterator[str]:
    for topic, read in batch.kafka.items():
        for number, partition in topics.topics.get(topic, {}).items():
            target = _offset_at(partition, topics.asked)
            # A query that was told which partitions to read has no others, however late its plan is.
            unread = number not in read and batch.planned < moment + DISCOVERS
            if read.get(number, partition.first if unread else target) < target:
                yield f"{topic}[{number}]"


def _offset_at(partition: PartitionAt, asked: datetime) -> int:
    """Return the offset that a partition had at the moment, or a later one; never an earlier one, as far as timestamps
    of records tell.

    Without a record since then its end is that offset: also where all was deleted, or nothing was ever written. A
    record with a timestamp of the future tells nothing of those after it.
    """
    later, stamped = partition.later, partition.stamped
    if later is None or (stamped is not None and stamped > asked + SETTLES):
        return partition.end
    return min(later, partition.end)


def made_again(batch: CommittedBatch, topics: TopicsAt) -> str:
    """Return in words which topics are not those that the batch has read, as it read beyond their ends; empty if none
    is. The answer must be younger than the batch."""
    again = [
        topic
        for topic, read in sorted(batch.kafka.items())
        for now in [topics.topics.get(topic, {})]
        if any(number not in now or offset > now[number].end for number, offset in read.items())
    ]
    return f"{', '.join(again)}: deleted and made again, for the query has read beyond the end" if again else ""


def _quiet_since(awaited: ProgressCondition, standing: StreamStanding, point: Checkpoint) -> datetime | None:
    """Return since when no batch has come, if that is long enough for a stream that is well."""
    moved, between = point.last_move, point.position.offset <= point.position.commit
    if awaited.quiet_after is None or moved is None or not between:
        return None
    since = max(moved, awaited.moment)
    well = standing.lives and standing.pulse in _WELL
    return since if well and standing.now - since >= awaited.quiet_after else None
