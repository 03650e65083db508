"""Giving a checkpoint to a stream by a person's word, after a look at everything that may still write it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.hdfs_path import as_word, plain_path
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.checkpoint_owner import Owner, OwnerGrant, Ownership, Record
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.checkpoint.ownership import entry_path, names, not_its_users, time_to_look
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.streams.checkpoint.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.checkpoint.ownership import owner_of, reader_of
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.folder.tagged_applications import Numbered, TaggedApplications
from airflow_kstream.supervise.streams.look.observe import observe


@dataclass(frozen=True)
class TakenOver:
    """The checkpoints that are the stream's now, and what was checked before, in words for people."""

    checkpoints: tuple[str, ...]
    checked: tuple[str, ...]


@dataclass(frozen=True)
class _Former:
    """A stream that a checkpoint's record names beside ours, by its newest entry; `counts` is whether that is the
    record's entry that counts."""

    point: str
    entry: Ownership
    counts: bool

    @property
    def owner(self) -> Owner:
        return self.entry.owner

    @property
    def hint(self) -> str:
        """Say how the entry is removed, if nobody else may be able to take it back."""
        if self.entry.strange or self.counts:
            return not_its_users(self.point, self.entry)
        path = entry_path(self.point, self.entry.number)
        removal = f"`hdfs dfs -rm {as_word(path)}` removes the entry"
        return f"; that it ever was the owner says {path}: if that is over, {removal}"


@dataclass(frozen=True)
class _Known:
    """Facts about a former owner: its newest claim that still has its fence, and what tells its applications.

    Both are None if they are out of reach, or nothing was claimed: then all applications with its tags count.
    """

    claim: Claim | None = None
    tagged: TaggedApplications | None = None


@dataclass(frozen=True)
class _Found:
    """The applications with a stream's tags: those that may be its own, with their generations, and strangers'."""

    own: Numbered
    strangers: tuple[Application, ...]


def take_over(
    run: StreamRun, reason: str, look_for: timedelta | None = None, *, tell: Callable[[str], None]
) -> TakenOver:
    """Make the stream the owner of its declared checkpoints. Nothing is stopped or submitted.

    It looks for applications of all owners in their records, regardless of authors, and for `look_for` at the
    checkpoints; by default for as long as two of their batches lie apart. What it can't see it says: an application
    without tags may write any checkpoint.

    Raises Conflict: when a former owner's application lives or may still arrive, when a checkpoint moves although no
    application of this stream lives, or when a claim would have to be given up on a frozen cluster.
    """
    require_submittable(run.spec, run.cluster)
    before = observe(run)
    locks = {point.path: CheckpointLock(run.session.hdfs, point.path) for point in before.checkpoints}
    records = {path: reader_of(run).record(lock) for path, lock in locks.items()}
    former = {path: _former_owners(run, path, locks[path], record) for path, record in records.items()}
    checked = [line for path, record in records.items() for line in _owners_are_gone(run, path, record, former[path])]
    checked += _others_that_run(run)
    checked += _movement(run, before, look_for, tell)
    taken = []
    for path, lock in locks.items():
        entry = records[path].entry
        if entry and not entry.released and entry.owner == owner_of(run) and _claimed(before, entry):
            continue
        said = "; ".join([reason or "no reason given", *checked])
        lock.give(records[path].numbers, owner_of(run), word=OwnerGrant.TAKE_OVER, reason=said)
        _look_again(run, lock, former[path])
        taken.append(path)
    _accept_as_they_are(run, before, reason)
    return TakenOver(tuple(taken), tuple(checked))


def _claimed(before: Observation, entry: Ownership) -> bool:
    return before.claim is not None and not entry.half_adopted(before.claim.generation)


def _former_owners(run: StreamRun, path: str, lock: CheckpointLock, record: Record) -> tuple[_Former, ...]:
    """Return the other streams that the record names, newest first: a newer entry, which a stranger may have written,
    hides none of them."""
    found: list[_Former] = []
    for entry in reader_of(run).entries(lock, record):
        if not any(entry.owner.same_stream(owner) for owner in (owner_of(run), *(each.owner for each in found))):
            found.append(_Former(plain_path(path), entry, entry is record.entry))
    return tuple(found)


def _owners_are_gone(run: StreamRun, path: str, record: Record, former: tuple[_Former, ...]) -> Iterator[str]:
    if not record.files:
        yield f"{path} had no owner"
    if (entry := record.entry) and entry.newer:
        why = f"{path} was given its owner by a newer version of this program{not_its_users(path, entry)}"
        raise Conflict(why, tried=_tried(run))
    for each in former:
        since = f"{each.entry.since:%Y-%m-%d %H:%M:%S} UTC"
        author = f", as {each.entry.author} wrote" if each.entry.strange else ""
        how = "released by" if each.entry.released else "of"
        yield f"{path} was {how} {each.owner} since {since}{author}: {_require_gone(run, each)}"


def _require_gone(run: StreamRun, former: _Former) -> str:
    """Return what shows that no application of this owner writes the checkpoint, nor will.

    Raises Conflict: when one lives, or was claimed and may still arrive.
    """
    path, owner = former.point, former.owner
    stream = StreamId(owner.stream, owner.state_dir)
    known = _known(run, stream, owner)
    claim, applications = known.claim, _all_applications(run, stream, known)
    living = [(number, app) for number, app in applications.own if app.alive]
    if claim and _writes_elsewhere(claim, path, living):
        return f"it is declared with other checkpoints now{_named(applications.strangers)}"
    if living:
        runs = ", ".join(sorted(f"{app.id} of user {app.user}" if not known.tagged else app.id for _, app in living))
        raise Conflict(
            f"{path} is written by {runs} of {owner}; stop that stream first{former.hint}", tried=_tried(run)
        )
    gone = f"no application of it runs on this cluster{_named(applications.strangers)}"
    if claim and claim.generation not in {number for number, _ in applications.own}:
        _give_up(run, former, claim)
    return gone


def _give_up(run: StreamRun, former: _Former, claim: Claim) -> None:
    """Give up a claim whose application never appeared, as its own supervisor would give it up now.

    Raises Conflict: when the application may still arrive, or the cluster is frozen.
    """
    owner, stream = former.owner, StreamId(former.owner.stream, former.owner.state_dir)
    ttl = claim.spec.submit.ttl if isinstance(claim.spec, StreamSpec) else run.spec.submit.ttl
    if (left := claim.claimed_at + ttl - run.session.hdfs.now()) > timedelta():
        why = f"generation {claim.generation} of {owner} was claimed and its application may still arrive"
        again = f"try again in {format_duration(left)}{former.hint}"
        raise Conflict(f"{former.point}: {why}; {again}", tried=_tried(run)).passing()
    with suppress(Denied):
        _require_thawed(run, stream)
        StreamFolder(run.session.at(stream.state_dir), stream).take_fence(claim.fence)


def _writes_elsewhere(claim: Claim, path: str, living: Numbered) -> bool:
    """Return whether the claim tells what runs of the stream, or may still arrive, and that it leaves `path` alone."""
    return (
        isinstance(claim.spec, StreamSpec)
        and not names(claim, path)
        and all(number == claim.generation for number, _ in living)
    )


def _named(strangers: Iterable[Application]) -> str:
    living = ", ".join(f"{app.id} of user {app.user}" for app in strangers if app.alive)
    return f" (not counted, although tagged like one: {living})" if living else ""


def _require_thawed(run: StreamRun, stream: StreamId) -> None:
    """Raises Conflict: when a person has frozen the cluster of this stream, or ours: then no fence is taken."""
    now = run.session.hdfs.now()
    for state_dir in sorted({stream.state_dir, run.cluster.state_dir}):
        freeze = FreezeStore(run.session.at(state_dir)).newest()
        if freeze.holds(now):
            raise Conflict(f"every stream of {state_dir} is {freeze}", tried=_tried(run)).passing(not freeze.doubt)


def _all_applications(run: StreamRun, stream: StreamId, known: _Known) -> _Found:
    """Return a stream's applications. What one ResourceManager lacks counts as gone once that is sure.

    Raises Unavailable: when it is not sure even after a while.
    """
    watch, claim = run.spec.watch, known.claim

    def listed() -> _Found:
        found = _listed(run, stream, known)
        generations = {number for number, _ in found.own}
        # Of a stream whose claims are out of reach, any newer generation may run.
        newest = claim.generation if claim else max(generations, default=0) + 1
        if newest not in generations and not any(app.alive for _, app in found.own):
            submitted = claim if claim and claim.submitted_by_us else None
            age = run.session.hdfs.now() - submitted.claimed_at if submitted else timedelta.max
            name = (claim.adoption.application if claim else None) or stream.generation_tag(newest)
            run.session.yarn.confirm_absence(name, age, watch.recovery_wait)
        return found

    return until(listed, watch.look_every, 2 * watch.recovery_wait)


def _listed(run: StreamRun, stream: StreamId, known: _Known) -> _Found:
    tagged = ((stream.generation_of(app.tags) or 0, app) for app in run.session.yarn.applications(stream.tag))
    applications, claim = list(tagged), known.claim
    if claim and claim.adoption.application and all(app.id != claim.adoption.application for _, app in applications):
        # A job that somebody else submitted carries no tags of that stream.
        with suppress(NotFound):
            applications.append((claim.generation, run.session.yarn.application(claim.adoption.application)))
    if known.tagged is None:
        return _Found(applications, ())
    session, ours = run.session.at(stream.state_dir), known.tagged
    strangers = [(number, app) for number, app in applications if ours.is_strangers(session, number, app)]
    return _Found([each for each in applications if each not in strangers], tuple(app for _, app in strangers))


def _known(run: StreamRun, stream: StreamId, owner: Owner) -> _Known:
    if owner.filesystem != run.cluster.default_fs:
        return _Known()
    folder = StreamFolder(run.session.at(stream.state_dir), stream)
    try:
        counted = folder.authored().counted
        claim = folder.claim(frozenset(counted))
    except Denied:
        return _Known()
    tagged = TaggedApplications(stream, counted) if claim else None
    return _Known(claim if claim and claim.fence in counted else None, tagged)


def _others_that_run(run: StreamRun) -> Iterator[str]:
    """Name the applications of the job's user that no stream has: a job that was submitted by hand is one of them."""
    user = run.session.yarn.user() or run.session.state.user
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
    newest = Newest(before.claim, before.current)
    for earlier, later in zip(before.checkpoints, run.engine.progress(run.session, run.spec, newest), strict=True):
        if _moved(earlier, later):
            why = f"{later.path} moved from batch {earlier.position.offset} to {later.position.offset} meanwhile"
            raise Conflict(f"{why}: a job writes it; stop that job, or adopt it", tried=_tried(run))
        last = f"moved last at {later.last_move:%Y-%m-%d %H:%M:%S} UTC" if later.last_move else "never moved"
        yield f"{later.path} {last} and did not for {format_duration(wait)}"


def _moved(earlier: Checkpoint, later: Checkpoint) -> bool:
    return (earlier.position, earlier.last_move) != (later.position, later.last_move)


def _look_again(run: StreamRun, lock: CheckpointLock, former: Iterable[_Former]) -> None:
    """Give it back to a former owner that claimed a generation meanwhile: its submitter looks at the owner
    afterwards."""
    for each in former:
        if each.entry.released:
            continue
        try:
            _require_gone(run, each)
        except KstreamError:
            numbers = [file.number for file in lock.files()]
            lock.give(numbers, each.owner, reason="it was claimed during a take-over")
            raise


def _accept_as_they_are(run: StreamRun, before: Observation, reason: str) -> None:
    """Let the next generation go on from their data, whatever an earlier claim of this stream remembers of them."""
    known = not before.claim.foreign if before.claim else before.generation > 0
    if known and not (before.current and before.current.alive):
        positions = {point.path: point.position for point in before.checkpoints}
        run.folder.accept(before.next_generation, positions, reason)


def _tried(run: StreamRun) -> str:
    return f"take the checkpoints of {run.spec.name} over"
