"""Giving a checkpoint to a stream by a person's word, after a look at everything that may still write it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.clients.waiting import until
from airflow_kstream.model.checkpoint import Checkpoint
from airflow_kstream.model.checkpoint_owner import Owner, Ownership, Word
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound
from airflow_kstream.model.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.identity import Identity, split_principal
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.policy.streams.ownership import time_to_look
from airflow_kstream.policy.streams.watchable import require_submittable
from airflow_kstream.supervise.streams.brake import Brake
from airflow_kstream.supervise.streams.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.observe import observe
from airflow_kstream.supervise.streams.ownership import owner_of
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import StreamFolder
from airflow_kstream.supervise.streams.strangers import Numbered


@dataclass(frozen=True)
class TakenOver:
    """The checkpoints that are the stream's now, and what was checked before, in words for people."""

    checkpoints: tuple[str, ...]
    checked: tuple[str, ...]


def take_over(
    run: StreamRun, reason: str, look_for: timedelta | None = None, *, tell: Callable[[str], None]
) -> TakenOver:
    """Make the stream the owner of its declared checkpoints. Nothing is stopped or submitted.

    It looks for applications of the former owners, and for `look_for` at the checkpoints; by default for as long as
    two of their batches lie apart. What it can't see it says: an application without tags may write any checkpoint.

    Raises Conflict: when a former owner's application lives or may still arrive, when a checkpoint moves although no
    application of this stream lives, or when a claim would have to be given up on a frozen cluster.
    """
    require_submittable(run.spec, run.cluster)
    before = observe(run)
    entries = [(point, CheckpointLock(run.session.hdfs, point.path)) for point in before.checkpoints]
    owners = {point.path: lock.newest() for point, lock in entries}
    checked = list(_former_owners(run, owners))
    checked += _others_that_run(run)
    checked += _movement(run, before, look_for, tell)
    taken = []
    for point, lock in entries:
        entry = owners[point.path]
        if entry and not entry.released and entry.owner == owner_of(run) and _claimed(before, entry):
            continue
        lock.give(entry, owner_of(run), word=Word.TAKE_OVER, reason="; ".join([reason or "no reason given", *checked]))
        _look_again(run, lock, entry)
        taken.append(point.path)
    _accept_as_they_are(run, before, reason)
    return TakenOver(tuple(taken), tuple(checked))


def _claimed(before: Observation, entry: Ownership) -> bool:
    return before.claim is not None and not entry.half_adopted(before.claim.generation)


def _former_owners(run: StreamRun, owners: dict[str, Ownership | None]) -> Iterator[str]:
    us = owner_of(run)
    for path, entry in owners.items():
        if entry is None:
            yield f"{path} had no owner"
        elif entry.newer:
            raise Conflict(f"{path} was given its owner by a newer version of this program", tried=_tried(run))
        elif not entry.owner.same_stream(us):
            _require_gone(run, path, entry.owner)
            since = f"{entry.since:%Y-%m-%d %H:%M:%S} UTC"
            yield f"{path} was {'released by' if entry.released else 'of'} {entry.owner} since {since}: " + (
                "no application of it runs on this cluster"
            )


def _require_gone(run: StreamRun, path: str, owner: Owner) -> None:
    """Raises Conflict: when an application of this owner lives, or was claimed and may still arrive."""
    stream = StreamId(owner.stream, owner.state_dir)
    claim = _newest_claim(run, stream, owner)
    applications = _all_applications(run, stream, claim)
    if living := sorted(app.id for _, app in applications if app.alive):
        raise Conflict(
            f"{path} is written by {', '.join(living)} of {owner}; stop that stream first", tried=_tried(run)
        )
    if claim is None or claim.generation in {number for number, _ in applications}:
        return
    ttl = claim.spec.submit.ttl if isinstance(claim.spec, StreamSpec) else run.spec.submit.ttl
    if (left := claim.claimed_at + ttl - run.session.hdfs.now()) > timedelta():
        why = f"generation {claim.generation} of {owner} was claimed and its application may still arrive"
        raise Conflict(f"{path}: {why}; try again in {format_duration(left)}", tried=_tried(run)).passing()
    with suppress(Denied):
        # It is given up, as its own supervisor would give it up now.
        _require_thawed(run, stream)
        StreamFolder(run.session.hdfs, stream).take_fence(claim.fence)


def _require_thawed(run: StreamRun, stream: StreamId) -> None:
    """Raises Conflict: when a person has frozen the cluster of this stream, or ours: then no fence is taken."""
    now = run.session.hdfs.now()
    for state_dir in sorted({stream.state_dir, run.cluster.state_dir}):
        freeze = Brake(run.session.hdfs, state_dir).newest()
        if freeze.holds(now):
            raise Conflict(f"every stream of {state_dir} is {freeze}", tried=_tried(run)).passing(not freeze.doubt)


def _all_applications(run: StreamRun, stream: StreamId, claim: Claim | None) -> Numbered:
    """Return a stream's applications with their generations. What one ResourceManager lacks counts as gone once that is
    sure.

    Raises Unavailable: when it is not sure even after a while.
    """
    watch = run.spec.watch

    def listed() -> Numbered:
        applications = _listed(run, stream, claim)
        generations = {number for number, _ in applications}
        # Of a stream whose claims are out of reach, any newer generation may run.
        newest = claim.generation if claim else max(generations, default=0) + 1
        if newest not in generations and not any(app.alive for _, app in applications):
            submitted = claim if claim and claim.submitted_by_us else None
            age = run.session.hdfs.now() - submitted.claimed_at if submitted else timedelta.max
            name = (claim.adopted if claim else None) or stream.generation_tag(newest)
            run.session.yarn.confirm_absence(name, age, watch.recovery_wait)
        return applications

    return until(listed, watch.look_every, 2 * watch.recovery_wait) or []


def _listed(run: StreamRun, stream: StreamId, claim: Claim | None) -> Numbered:
    tagged = ((stream.generation_of(app.tags), app) for app in run.session.yarn.applications(stream.tag))
    applications = [(number or 0, app) for number, app in tagged]
    if claim and claim.adopted and all(app.id != claim.adopted for _, app in applications):
        # A job that somebody else submitted carries no tags of that stream.
        with suppress(NotFound):
            applications.append((claim.generation, run.session.yarn.application(claim.adopted)))
    return applications


def _newest_claim(run: StreamRun, stream: StreamId, owner: Owner) -> Claim | None:
    """Read the newest claim that still has its fence; None if there is none, or it is out of reach."""
    if owner.filesystem != run.cluster.default_fs:
        return None
    folder = StreamFolder(run.session.hdfs, stream)
    try:
        names = folder.names()
        claim = folder.claim(names)
    except Denied:
        return None
    return claim if claim and claim.fence in names else None


def _others_that_run(run: StreamRun) -> Iterator[str]:
    """Name the applications of the job's user that no stream has: a job that was submitted by hand is one of them."""
    user = _user(run.session.identity)
    theirs = [app.id for app in run.session.yarn.running_as(user) if ALL_STREAMS_TAG not in app.tags]
    named = ", ".join(sorted(theirs)) or "none"
    yield f"applications of {user} that run and are of no stream: {named}"


def _movement(
    run: StreamRun, before: Observation, look_for: timedelta | None, tell: Callable[[str], None]
) -> Iterator[str]:
    if before.current and before.current.alive:
        yield f"{before.current.id} of this stream runs, so its checkpoints may move"
        return
    wait = time_to_look(run.spec, before.checkpoints) if look_for is None else look_for
    tell(f"watching the checkpoints for {format_duration(wait)}")
    time.sleep(wait.total_seconds())
    for earlier, later in zip(before.checkpoints, run.engine.progress(run.session, run.spec), strict=True):
        if _moved(earlier, later):
            why = f"{later.path} moved from batch {earlier.position.offset} to {later.position.offset} meanwhile"
            raise Conflict(f"{why}: a job writes it; stop that job, or adopt it", tried=_tried(run))
        last = f"moved last at {later.last_move:%Y-%m-%d %H:%M:%S} UTC" if later.last_move else "never moved"
        yield f"{later.path} {last} and did not for {format_duration(wait)}"


def _moved(earlier: Checkpoint, later: Checkpoint) -> bool:
    return (earlier.position, earlier.last_move) != (later.position, later.last_move)


def _look_again(run: StreamRun, lock: CheckpointLock, former: Ownership | None) -> None:
    """Give it back if the former owner claimed a generation meanwhile: its submitter looks at the owner afterwards."""
    if former is None or former.released or former.owner.same_stream(owner_of(run)):
        return
    try:
        _require_gone(run, "it", former.owner)
    except KstreamError:
        lock.give(lock.newest(), former.owner, reason="it was claimed during a take-over")
        raise


def _accept_as_they_are(run: StreamRun, before: Observation, reason: str) -> None:
    """Let the next generation go on from their data, whatever an earlier claim of this stream remembers of them."""
    known = not before.claim.newer if before.claim else before.generation > 0
    if known and not (before.current and before.current.alive):
        positions = {point.path: point.position for point in before.checkpoints}
        run.folder.accept(before.generation + 1, positions, reason)


def _user(identity: Identity) -> str:
    return identity.do_as or split_principal(identity.principal)[0]


def _tried(run: StreamRun) -> str:
    return f"take the checkpoints of {run.spec.name} over"
