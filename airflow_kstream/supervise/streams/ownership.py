"""A stream's ownership of its checkpoints: taken before a submission, checked after the claim, released at the end."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from airflow_kstream.model.checkpoint import Checkpoint
from airflow_kstream.model.checkpoint_owner import NOTHING_SAID, Owner, Ownership, Said, Word
from airflow_kstream.model.errors import Conflict, KstreamError
from airflow_kstream.model.generation import Claim
from airflow_kstream.model.hdfs_path import plain_path
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.policy.streams.ownership import Standing, judge
from airflow_kstream.policy.streams.watchable import is_watchable
from airflow_kstream.supervise.streams.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.run import StreamRun


@dataclass(frozen=True)
class _Held:
    """A checkpoint that the stream may use, with the entry of its owner."""

    lock: CheckpointLock
    point: Checkpoint
    entry: Ownership | None
    standing: Standing


def owner_of(run: StreamRun) -> Owner:
    """Return this stream as the owner of checkpoints."""
    return Owner(run.spec.name, run.cluster.state_dir, run.cluster.default_fs)


def require_available(run: StreamRun, observation: Observation) -> None:
    """Check that the stream owns each declared checkpoint or may take it; change nothing.

    Raises Conflict: when another stream owns one, or one has data that nobody has given to this stream.
    """
    _judged(run, observation.checkpoints, observation.claim, Word.NONE)


def own(run: StreamRun, observation: Observation, said: Said = NOTHING_SAID) -> tuple[str, ...]:
    """Own every declared checkpoint, and return those that were taken now. All or none are taken.

    Raises Conflict: as `require_available`, or when another stream was quicker.
    """
    return _own(run, observation.checkpoints, observation.claim, said)


def own_what_runs(run: StreamRun, observation: Observation) -> tuple[str, ...]:
    """Own the checkpoints of the running generation, which may have been claimed before checkpoints had owners.

    Raises Conflict: when another stream owns one.
    """
    claim = observation.claim
    spec = claim.spec if claim and isinstance(claim.spec, StreamSpec) else run.spec
    points = tuple(Checkpoint(path, None) for path in spec.checkpoints if is_watchable(path, run.cluster))
    return _own(run, points, claim, NOTHING_SAID)


def require_owned(run: StreamRun) -> None:
    """Check, after a claim, that every declared checkpoint is still this stream's.

    From then on the claim shows that the data is the stream's. A person's word was for this claim alone: after the loss
    of `state_dir` it would let another generation start beside the one that runs.

    Raises Conflict: when a person has given one to another stream since `own`.
    """
    for path in run.spec.checkpoints:
        lock = CheckpointLock(run.session.hdfs, path)
        entry = lock.newest()
        if entry is None or entry.released or not entry.owner.same_stream(owner_of(run)):
            raise Conflict(f"{path} has got another owner meanwhile", tried=f"submit {run.spec.name}")
        if entry.word:
            lock.give(entry, owner_of(run), reason=f"claimed after the word: {entry.word}")


def release(run: StreamRun, checkpoints: Iterable[str], reason: str) -> tuple[str, ...]:
    """Release those of these checkpoints that the stream owns, and return them."""
    released = []
    for path in sorted({plain_path(path) for path in checkpoints if is_watchable(path, run.cluster)}):
        lock = CheckpointLock(run.session.hdfs, path)
        entry = lock.newest()
        if entry and not entry.newer and not entry.released and entry.owner.same_stream(owner_of(run)):
            # A word that no claim has followed yet still holds.
            word, generation = entry.word, entry.generation
            lock.give(entry, owner_of(run), released=True, word=word, reason=reason, generation=generation)
            released.append(path)
    return tuple(released)


def no_longer_declared(run: StreamRun, claim: Claim | None) -> tuple[str, ...]:
    """Return the checkpoints of the last generation that the declaration has given up."""
    if claim is None or not isinstance(claim.spec, StreamSpec):
        return ()
    declared = {plain_path(path) for path in run.spec.checkpoints}
    return tuple(path for path in claim.spec.checkpoints if plain_path(path) not in declared)


def _own(run: StreamRun, points: Iterable[Checkpoint], claim: Claim | None, said: Said) -> tuple[str, ...]:
    taken: list[str] = []
    try:
        for held in _judged(run, points, claim, said.word):
            taken += () if held.standing is Standing.OWNED else _taken(run, held, claim, said)
    except KstreamError:
        # A stream that can't have all of its checkpoints keeps none from others.
        with suppress(KstreamError):
            release(run, taken, "another of its checkpoints could not be had")
        raise
    return tuple(taken)


def _taken(run: StreamRun, held: _Held, claim: Claim | None, said: Said) -> tuple[str, ...]:
    """Take it, and return it; nothing if another supervisor of the same stream was quicker."""
    try:
        held.lock.give(held.entry, owner_of(run), word=said.word, reason=said.reason, generation=said.generation)
    except Conflict:
        if _held(run, held.point, claim, said.word).standing is not Standing.OWNED:
            raise
        return ()
    return (held.point.path,)


def _judged(run: StreamRun, points: Iterable[Checkpoint], claim: Claim | None, word: Word) -> list[_Held]:
    """Judge all checkpoints, always in the same order, before the first is touched."""
    return [_held(run, point, claim, word) for point in sorted(points, key=lambda point: plain_path(point.path))]


def _held(run: StreamRun, point: Checkpoint, claim: Claim | None, word: Word) -> _Held:
    """Judge one checkpoint. Raises Conflict: when the stream may not use it."""
    lock = CheckpointLock(run.session.hdfs, point.path)
    entry = lock.newest()
    judgement = judge(owner_of(run), point, entry, claim, word)
    if judgement.standing is Standing.REFUSED:
        raise Conflict(f"{point.path} {judgement.why}", tried=f"own the checkpoint of {run.spec.name}")
    return _Held(lock, point, entry, judgement.standing)
