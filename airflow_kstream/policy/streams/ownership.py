"""The rules by which a stream may own a checkpoint.

An owner keeps its checkpoint until it gives it up: a stream that is between two generations, or that ended by itself,
comes back. So neither a desired state nor a silent checkpoint makes another stream its owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise

from airflow_kstream.model.checkpoint import Checkpoint
from airflow_kstream.model.checkpoint_owner import Owner, Ownership, Word
from airflow_kstream.model.generation import Claim, Position
from airflow_kstream.model.hdfs_path import plain_path
from airflow_kstream.model.stream import StreamSpec

_UNTOUCHED = Position(None, -1, -1)
_WAYS_OUT = (
    "If its job runs, adopt it with `kstream streams adopt SPEC.yaml --application-id ID`; if it is gone for "
    "good, take the checkpoint over with `kstream streams take-over SPEC.yaml`; or declare another checkpoint"
)
# A person waits for it at a terminal. What was seen is shown beside for how long.
_LONGEST_LOOK = timedelta(minutes=10)


class Standing(StrEnum):
    """The relation of a stream to a checkpoint: it owns it, may take it, or may not use it."""

    OWNED = "owned"
    FREE = "free"
    REFUSED = "refused"


@dataclass(frozen=True)
class Judgement:
    """The relation, and why it is refused."""

    standing: Standing
    why: str = ""


def judge(us: Owner, point: Checkpoint, ownership: Ownership | None, claim: Claim | None, word: Word) -> Judgement:
    """Judge whether we may use the checkpoint at `point`.

    `claim` is our newest one. One that names the checkpoint shows that its data is ours although nobody owns it: then
    it was claimed before checkpoints had owners. A `word` of a person replaces such a proof.
    """
    if ownership is None:
        return _unowned(point, bool(word) or _names(claim, point), "has no owner")
    if ownership.newer:
        return Judgement(Standing.REFUSED, "was given its owner by a newer version of this program; upgrade this one")
    if ownership.owner.same_stream(us):
        return _our_own(us, point, ownership, claim, word)
    if ownership.released:
        return _unowned(point, bool(word), f"was released by {ownership.owner} {_since(ownership)}")
    return Judgement(Standing.REFUSED, _belongs_to(ownership))


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


def _our_own(us: Owner, point: Checkpoint, ownership: Ownership, claim: Claim | None, word: Word) -> Judgement:
    """Judge an entry of this stream's. Without a claim it may be from a lost state_dir, or a copy from elsewhere."""
    if not word and ownership.half_adopted(claim.generation if claim else 0):
        return Judgement(Standing.REFUSED, _half_adopted(ownership))
    given = word or (ownership.word and ownership.owner == us)
    if given or claim or point.position == _UNTOUCHED:
        return Judgement(Standing.FREE if ownership.released else Standing.OWNED)
    return _unowned(point, False, "has this stream as its owner, but state_dir has no claim of it,")


def _unowned(point: Checkpoint, ours: bool, whose: str) -> Judgement:
    at = point.position
    if ours or at == _UNTOUCHED:
        return Judgement(Standing.FREE)
    data = f"data up to batch {at.offset}" if at.offset >= 0 else "the start of a query"
    moved = f", which moved last at {point.last_move:%Y-%m-%d %H:%M:%S} UTC" if point.last_move else ""
    why = f"{whose} and holds {data}{moved}: somebody may still write it. {_WAYS_OUT}"
    return Judgement(Standing.REFUSED, why)


def _half_adopted(ownership: Ownership) -> str:
    return (
        f"belongs to this stream {_since(ownership)}: a job was being adopted for it ({ownership.reason}), and no "
        f"claim followed: that job may still write it. {_WAYS_OUT}"
    )


def _belongs_to(ownership: Ownership) -> str:
    return (
        f"belongs to {ownership.owner} {_since(ownership)}. `kstream streams stop {ownership.owner.stream}` with a "
        "connection to that state_dir releases it; if that stream is gone for good, "
        "`kstream streams take-over SPEC.yaml` takes the checkpoint over; or declare another checkpoint"
    )


def _since(ownership: Ownership) -> str:
    by = f" (by {ownership.by})" if ownership.by else ""
    return f"since {ownership.since:%Y-%m-%d %H:%M:%S} UTC{by}"


def _names(claim: Claim | None, point: Checkpoint) -> bool:
    if claim is None or not isinstance(claim.spec, StreamSpec):
        return False
    return plain_path(point.path) in {plain_path(path) for path in claim.spec.checkpoints}
