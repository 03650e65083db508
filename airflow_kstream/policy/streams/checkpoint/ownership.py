"""The rules by which a stream may own a checkpoint.

An owner keeps its checkpoint until it gives it up: a stream that is between two generations, or that ended by itself,
comes back. So neither a desired state nor a silent checkpoint makes another stream its owner.

An entry that names another stream refuses, regardless of its author. One that gives something counts only from an
author who may speak for the stream that would get it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise

from airflow_kstream.model.clusters.hdfs_path import as_word, plain_path
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.checkpoint_owner import (
    OWNER_FOLDER,
    Owner,
    OwnerGrant,
    Ownership,
    Record,
    owner_file,
)
from airflow_kstream.model.streams.generation import Claim, Position, spoken_by
from airflow_kstream.model.streams.stream import StreamSpec

_UNTOUCHED = Position(None, -1, -1)
_WAYS_OUT = (
    "If its job runs, adopt it with `kstream streams adopt SPEC.yaml --application-id ID`; if it is gone for "
    "good, take the checkpoint over with `kstream streams take-over SPEC.yaml`; or declare another checkpoint"
)
# A person waits for it at a terminal. What was seen is shown beside for how long.
_LONGEST_LOOK = timedelta(minutes=10)


class Relation(StrEnum):
    """The relation of a stream to a checkpoint: it owns it, may take it, or may not use it."""

    OWNED = "owned"
    FREE = "free"
    REFUSED = "refused"


@dataclass(frozen=True)
class OwnershipJudgement:
    """The relation, and why it is refused."""

    standing: Relation
    why: str = ""


def counts(us: Owner, entry: Ownership) -> bool:
    """Return whether an entry says something to us; a stranger's that names us, or nobody, gives us nothing."""
    if entry.newer:
        return True
    if entry.owner.same_stream(us):
        return not entry.strange
    return entry.gives or not entry.released


def judge(us: Owner, point: Checkpoint, record: Record, claim: Claim | None, word: OwnerGrant) -> OwnershipJudgement:
    """Judge whether we may use the checkpoint at `point`.

    `claim` is our newest one. One that names the checkpoint shows that its data is ours although nobody owns it: its
    record was lost, or strangers wrote it. A `word` of a person replaces such a proof.
    """
    entry = record.entry
    if entry is None:
        return _unowned(point, bool(word) or names(claim, point.path), f"has no owner{_passed(point, record)}")
    if entry.newer:
        why = "was given its owner by a newer version of this program; upgrade this one"
        return OwnershipJudgement(Relation.REFUSED, why + not_its_users(point.path, entry))
    if entry.owner.same_stream(us):
        return _our_own(us, point, entry, claim, word)
    if entry.released:
        return _unowned(point, bool(word), f"was released by {entry.owner} {_since(entry)}")
    return OwnershipJudgement(Relation.REFUSED, _belongs_to(point, record, entry))


def names(claim: Claim | None, checkpoint: str) -> bool:
    """Return whether the claim is known to be of a generation that writes this checkpoint."""
    if claim is None or not isinstance(claim.spec, StreamSpec):
        return False
    return plain_path(checkpoint) in {plain_path(path) for path in claim.spec.checkpoints}


def entry_path(checkpoint: str, number: int) -> str:
    return f"{plain_path(checkpoint)}/{OWNER_FOLDER}/{owner_file(number)}"


def not_its_users(checkpoint: str, entry: Ownership) -> str:
    """Say how an entry is removed whose author does not speak for the stream that it refuses; nothing of any other."""
    if not entry.strange:
        return ""
    removal = f"`hdfs dfs -rm {as_word(entry_path(checkpoint, entry.number))}` removes it"
    return f"; {entry.author} wrote that, and if the checkpoint is not theirs to give, {removal}"


def time_to_look(spec: StreamSpec, points: Iterable[Checkpoint]) -> timedelta:
    """Return for how long a person's command watches checkpoints: twice the median time between two of their batches.

    At least the stream's `stop.silence`, at most ten minutes.
    """
    gaps = sorted(gap for point in points for gap in _gaps(point))
    median = gaps[len(gaps) // 2] if gaps else timedelta()
    return min(_LONGEST_LOOK, max(spec.stop.silence, 2 * median))


def _gaps(point: Checkpoint) -> list[timedelta]:
    times = [at for _, at in sorted(point.offsets.items())]
    return [later - earlier for earlier, later in pairwise(times)]


def _our_own(
    us: Owner, point: Checkpoint, ownership: Ownership, claim: Claim | None, word: OwnerGrant
) -> OwnershipJudgement:
    """Judge an entry of this stream's. Without a claim it may be from a lost state_dir, or a copy from elsewhere."""
    if not word and ownership.half_adopted(claim.generation if claim else 0):
        return OwnershipJudgement(Relation.REFUSED, _half_adopted(ownership))
    given = word or (ownership.gives and ownership.word and ownership.owner == us)
    if given or claim or point.position == _UNTOUCHED:
        return OwnershipJudgement(Relation.FREE if ownership.released else Relation.OWNED)
    return _unowned(point, False, "has this stream as its owner, but state_dir has no claim of it,")


def _unowned(point: Checkpoint, ours: bool, whose: str) -> OwnershipJudgement:
    at = point.position
    if ours or at == _UNTOUCHED:
        return OwnershipJudgement(Relation.FREE)
    data = f"data up to batch {at.offset}" if at.offset >= 0 else "the start of a query"
    moved = f", which moved last at {point.last_move:%Y-%m-%d %H:%M:%S} UTC" if point.last_move else ""
    why = f"{whose} and holds {data}{moved}: somebody may still write it. {_WAYS_OUT}"
    return OwnershipJudgement(Relation.REFUSED, why)


def _half_adopted(ownership: Ownership) -> str:
    return (
        f"belongs to this stream {_since(ownership)}: a job was being adopted for it ({ownership.reason}), and no "
        f"claim followed: that job may still write it. {_WAYS_OUT}"
    )


def _belongs_to(point: Checkpoint, record: Record, entry: Ownership) -> str:
    return (
        f"belongs to {entry.owner} {_since(entry)}{_passed(point, record)}. `kstream streams stop "
        f"{entry.owner.stream}` with a connection to that state_dir releases it; if that stream is gone for good, "
        "`kstream streams take-over SPEC.yaml` takes the checkpoint over; or declare another checkpoint"
        f"{not_its_users(point.path, entry)}"
    )


def _passed(point: Checkpoint, record: Record) -> str:
    """Name the newest of the entries that would give something, had their authors a say here."""
    if not record.passed:
        return ""
    newest = record.passed[0]
    says = "a release" if newest.released else f"that it is {newest.owner}'s"
    path = entry_path(point.path, newest.number)
    return f" ({path} says {says}, which counts for nothing here: {newest.author} wrote it)"


def _since(ownership: Ownership) -> str:
    speaker = spoken_by(ownership.by, ownership.author)
    by = f" (by {speaker})" if speaker else ""
    return f"since {ownership.since:%Y-%m-%d %H:%M:%S} UTC{by}"
