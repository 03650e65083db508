"""A stream's ownership of its checkpoints: taken before a submission, checked after the claim, released at the end.

A stream that is declared twice shows here: each declaration would restart it for ever because of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from airflow_kstream.model.clusters.authors import Ground, Standing
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.checkpoint_owner import (
    NOTHING_SAID,
    EntryFile,
    Owner,
    OwnerGrant,
    Ownership,
    OwnerStatement,
    Record,
)
from airflow_kstream.model.streams.contract import claim_file, newest_claim, stop_marker
from airflow_kstream.model.streams.generation import Claim, DesiredState, StreamId
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Phase, Settled, Stop
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.authors import giving
from airflow_kstream.policy.streams.checkpoint.ownership import Relation, counts, judge, not_its_users
from airflow_kstream.policy.streams.ends.unclaimed import lost_claim
from airflow_kstream.policy.streams.restart.former_spec import DECLARED_SPEC_CHANGED, duel
from airflow_kstream.policy.streams.restart.watchable import is_watchable
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe

# Two declarations show after three claims; restarts for other reasons can lie between them.
_CLAIMS_READ = 6

# A record of ours has ten entries; one of a hundred that give nothing is a stranger's work.
_MOST_READ = 100


@dataclass(frozen=True)
class _Held:
    """A checkpoint that the stream may use, with its record."""

    lock: CheckpointLock
    point: Checkpoint
    record: Record
    standing: Relation


@dataclass(frozen=True)
class Reader:
    """A stream as the reader of checkpoints' records. `acting` is whether the session logged in as its own user."""

    session: ClusterSession
    stream: StreamId
    acting: bool = False

    @property
    def owner(self) -> Owner:
        return Owner(self.stream.name, self.session.cluster.state_dir, self.session.cluster.default_fs)

    def record(self, lock: CheckpointLock) -> Record:
        """Read as far as the newest entry that counts. Costs a listing, and mostly one entry.

        Raises as `CheckpointLock.read`, for any entry that may name an owner.
        """
        files, passed = lock.files(), list[Ownership]()
        standings = self._standings(lock, {file.author for file in files})
        for file in files[:_MOST_READ]:
            entry = lock.read(file, standings[file.author])
            if counts(self.owner, entry):
                return Record(files, entry, tuple(passed))
            passed.append(entry)
        _require_readable(lock, files)
        return Record(files, None, tuple(passed))

    def entries(self, lock: CheckpointLock, record: Record) -> Iterator[Ownership]:
        """Yield all entries of a record, newest first, regardless of their authors. One that newer entries have
        replaced is left out if it can't be read. Raises InvalidInput: when there are too many."""
        _require_readable(lock, record.files)
        newest = [*record.passed, *([record.entry] if record.entry else [])]
        yield from newest
        standings = self._standings(lock, {file.author for file in record.files})
        for file in record.files[len(newest) :]:
            try:
                entry = lock.read(file, standings[file.author])
            except (InvalidInput, Denied):
                continue
            yield entry

    def _standings(self, lock: CheckpointLock, authors: Collection[str]) -> Mapping[str, Standing]:
        """Judge the authors of entries. Costs no request unless somebody unknown wrote."""
        state, supervisors = self.session.state, self.session.state.supervisors
        users = frozenset({state.user} if self.acting else ())
        unknown = {author for author in authors if author and author not in supervisors} - {state.user}
        users |= self.session.copies.users(self.stream, among=unknown, where=lock.folder)
        ground = _ground(lock) if unknown - users else None
        return {author: giving(author, state.user, supervisors, ground, users) for author in authors}

    def still_owns(self, checkpoint: str) -> bool:
        """Return whether the stream may still own it, regardless of entries by strangers.

        Raises InvalidInput: when a newer version of this program gave it its owner, or nobody can tell.
        """
        lock, released = CheckpointLock(self.session.hdfs, checkpoint), set[str]()
        files = lock.files()
        _require_readable(lock, files)
        standings = self._standings(lock, {file.author for file in files})
        for file in files:
            if standings[file.author] is Standing.STRANGER:
                continue
            entry = lock.read(file, standings[file.author])
            if entry.newer:
                raise InvalidInput(f"a newer version of this program gave {checkpoint} its owner")
            ours = entry.owner.same_stream(self.owner)
            still = ours and not entry.released and entry.author not in released
            if entry.gives or still:
                return still
            # An author who is not proven takes back an entry of their own, and nothing else.
            released |= {entry.author} if ours else set()
        return False


def _require_readable(lock: CheckpointLock, files: Collection[EntryFile]) -> None:
    if len(files) > _MOST_READ:
        authors = ", ".join(sorted({file.author for file in files}))
        why = f"{lock.folder} has {len(files)} entries, of {authors}: remove those of strangers with `hdfs dfs -rm`"
        raise InvalidInput(why, tried="read its owner")


def _ground(lock: CheckpointLock) -> Ground | None:
    with suppress(NotFound):
        return lock.ground()
    return None


def owner_of(run: StreamRun) -> Owner:
    """Return this stream as the owner of checkpoints."""
    return reader_of(run).owner


def reader_of(run: StreamRun) -> Reader:
    return Reader(run.session, run.id, run.acts_as_stream)


def require_available(run: StreamRun, observation: Observation, word: OwnerGrant = OwnerGrant.NONE) -> None:
    """Check that the stream owns each declared checkpoint or may take it, by a person's `word`; change nothing.

    Raises Conflict: when another stream owns one, or one has data that nobody has given to this stream.
    """
    _judged(run, observation.checkpoints, observation.claim, word)


def own(run: StreamRun, observation: Observation, said: OwnerStatement = NOTHING_SAID) -> tuple[str, ...]:
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
        record = reader_of(run).record(lock)
        entry = record.entry
        if entry is None or entry.released or not entry.owner.same_stream(owner_of(run)):
            whose = not_its_users(path, entry) if entry else ""
            raise Conflict(f"{path} has got another owner meanwhile{whose}", tried=f"submit {run.spec.name}")
        if entry.word:
            lock.give(record.numbers, owner_of(run), reason=f"claimed after the word: {entry.word}")


def release(run: StreamRun, checkpoints: Iterable[str], reason: str) -> tuple[str, ...]:
    """Release those of these checkpoints that the stream owns, and return them."""
    released = []
    for path in sorted({plain_path(path) for path in checkpoints if is_watchable(path, run.cluster)}):
        lock = CheckpointLock(run.session.hdfs, path)
        record = reader_of(run).record(lock)
        entry = record.entry
        if entry and not entry.newer and not entry.released and entry.owner.same_stream(owner_of(run)):
            # A word that no claim has followed yet still holds.
            word, generation = entry.word, entry.generation
            lock.give(record.numbers, owner_of(run), released=True, word=word, reason=reason, generation=generation)
            released.append(path)
    return tuple(released)


def no_longer_declared(run: StreamRun, claim: Claim | None) -> tuple[str, ...]:
    """Return the checkpoints of the last generation that the declaration has given up."""
    if claim is None or not isinstance(claim.spec, StreamSpec):
        return ()
    declared = {plain_path(path) for path in run.spec.checkpoints}
    return tuple(path for path in claim.spec.checkpoints if plain_path(path) not in declared)


def _own(run: StreamRun, points: Iterable[Checkpoint], claim: Claim | None, said: OwnerStatement) -> tuple[str, ...]:
    taken: list[str] = []
    try:
        for held in _judged(run, points, claim, said.word):
            taken += () if held.standing is Relation.OWNED else _taken(run, held, claim, said)
    except KstreamError:
        # A stream that can't have all of its checkpoints keeps none from others.
        with suppress(KstreamError):
            release(run, taken, "another of its checkpoints could not be had")
        raise
    return tuple(taken)


def _taken(run: StreamRun, held: _Held, claim: Claim | None, said: OwnerStatement) -> tuple[str, ...]:
    """Take it, and return it; nothing if another supervisor of the same stream was quicker."""
    seen, us = held.record.numbers, owner_of(run)
    try:
        held.lock.give(seen, us, word=said.word, reason=said.reason, generation=said.generation)
    except Conflict:
        if _held(run, held.point, claim, said.word).standing is not Relation.OWNED:
            raise
        return ()
    return (held.point.path,)


def _judged(run: StreamRun, points: Iterable[Checkpoint], claim: Claim | None, word: OwnerGrant) -> list[_Held]:
    """Judge all checkpoints, always in the same order, before the first is touched."""
    return [_held(run, point, claim, word) for point in sorted(points, key=lambda point: plain_path(point.path))]


def _held(run: StreamRun, point: Checkpoint, claim: Claim | None, word: OwnerGrant) -> _Held:
    """Judge one checkpoint. Raises Conflict: when the stream may not use it."""
    lock = CheckpointLock(run.session.hdfs, point.path)
    record = reader_of(run).record(lock)
    judgement = judge(owner_of(run), point, record, claim, word)
    if judgement.standing is Relation.REFUSED:
        raise Conflict(f"{point.path} {judgement.why}", tried=f"own the checkpoint of {run.spec.name}")
    return _Held(lock, point, record, judgement.standing)


def require_no_duel(run: StreamRun, observation: Observation) -> None:
    """Check that a restart for the declared spec is not one more move in a duel of two declarations.

    It reads the last claims, which costs a dozen requests; only such a restart needs it.

    Raises Conflict: when it is, with the supervisors that claimed for either of them.
    """
    if why := duel(run.spec, tuple(_claims(run, observation)), observation.now):
        raise Conflict(why, tried=f"restart {run.spec.name} with its declared spec")


def _claims(run: StreamRun, observation: Observation) -> Iterator[Claim]:
    if observation.claim is None:
        return
    yield observation.claim
    newest = observation.claim.generation
    for number in range(newest - 1, max(0, newest - _CLAIMS_READ), -1):
        # An unreadable claim of long ago shows no duel, and is not an obstacle.
        with suppress(InvalidInput):
            claim = run.folder.claim(observation.files & {claim_file(number)})
            if claim:
                yield claim


# Takes what was done, and why.
Recorder = Callable[[str, str], None]


def check_ownership_before_stop(run: StreamRun, observation: Observation, step: Stop) -> None:
    """Check, before a generation is stopped to be followed, that its successor may have its checkpoints.

    A forced restart is no exception: the declaration may name others than the running generation's.

    Raises Conflict: when it may not, or when the restart is the next move in a duel of two declarations.
    """
    if observation.desired.state is not DesiredState.RUNNING or stop_marker(step.generation) in observation.files:
        return
    if step.why == DECLARED_SPEC_CHANGED:
        require_no_duel(run, observation)
    require_available(run, observation)


def take_ownership_before_claim(run: StreamRun, observation: Observation, why: str, record: Recorder) -> None:
    """Own the declared checkpoints, and release those of the last generation that are no longer declared."""
    for path in own(run, observation):
        record(f"owns {path}", why)
    for path in release(run, no_longer_declared(run, observation.claim), "no longer declared"):
        record(f"released {path}", "it is no longer declared")


def check_ownership_before_submission(run: StreamRun, claim: Claim) -> None:
    """Check the owner again, now that the claim is there: a take-over writes its owner first, and then looks at claims.

    Raises Conflict: when somebody has given a checkpoint to another stream. The claim is then given up.
    """
    try:
        require_owned(run)
    except Conflict:
        run.take_fence(claim.fence)
        raise


def settle_ownership(
    run: StreamRun, observation: Observation, step: Settled, record: Recorder, tell: Callable[[str], None]
) -> str:
    """Own what runs and release what is stopped; return the reason if that was not possible.

    That a running generation's checkpoint is another stream's stops nothing: no successor is submitted, and the report
    says so.
    """
    if not run.declared or (observation.claim and observation.claim.foreign):
        return ""
    if lost := lost_claim(observation):
        tell(lost)
        return lost
    try:
        if step.phase is Phase.STOPPED:
            _release(run, observation, record)
        elif observation.current and observation.current.alive:
            for path in own_what_runs(run, observation):
                record(f"owns {path}", f"generation {observation.generation} writes it")
    except KstreamError as error:
        tell(f"the owner of a checkpoint is in doubt: {error}")
        return error.without_advice
    return ""


def _release(run: StreamRun, observation: Observation, record: Recorder) -> None:
    paths = (*run.spec.checkpoints, *no_longer_declared(run, observation.claim))
    for path in release(run, paths, "the stream was stopped"):
        record(f"released {path}", "the stream is stopped")
    if newest_claim(run.folder.names()) != newest_claim(observation.files):
        # Started again meanwhile: its supervisor looks at the owner after its claim, and this is the other half.
        own_what_runs(run, observe(run))
