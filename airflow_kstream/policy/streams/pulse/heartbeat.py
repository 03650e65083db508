"""The progress of a query, judged by its checkpoint alone (Algorithm B)."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import Claim, Missing, Position
from airflow_kstream.model.streams.looks import Looks, Sign, SignKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stall import Heartbeat, Pulse, Stall
from airflow_kstream.model.streams.stream_policies import FailurePolicy, HeartbeatPolicy
from airflow_kstream.policy.streams.checkpoint.positions import changes
from airflow_kstream.policy.streams.pulse.by_clock import Overlong, beat_by_clock, may_hang, overlong_by_clock

# Worst first: a job with several queries is as healthy as the worst of them.
_BY_WEIGHT = (
    Pulse.CHANGED,
    Pulse.STALLED,
    Pulse.NO_CHECKPOINT,
    Pulse.START_STALLED,
    Pulse.UNKNOWN,
    Pulse.SLOW,
    Pulse.STARTING,
    Pulse.IDLE,
    Pulse.HEALTHY,
)

_UNCONFIRMED = {Pulse.STALLED, Pulse.START_STALLED}

# Of a threshold, between the two verdicts that make a stall: a NameNode that fails over may be minutes ahead.
CONFIRMS = 0.25


def heartbeat(policy: HeartbeatPolicy, observation: Observation, looks: Looks | None = None) -> Heartbeat:
    """Return the worst pulse among the stream's checkpoints; UNKNOWN when it declares none.

    `looks` are those of a watcher: it calls a stall what it found overlong twice, by its own clock, and a checkpoint
    CHANGED that it saw further in this generation. Without them it is the word of one look.
    """
    if observation.claim is None or not observation.checkpoints:
        return Heartbeat(Pulse.UNKNOWN, None, "no checkpoint is declared, or nothing was claimed yet")
    app = observation.current
    runs = app is not None and app.state is ApplicationState.RUNNING
    claim, now = observation.claim, observation.now
    beats = [
        _changed(point, looks, runs=runs)
        or _of_dstreams(point, now)
        or _nowhere(policy, point, claim, now, runs=runs)
        or _confirmed(_pulse(policy, point, claim, now, looks, runs=runs), _overlong(policy, point, claim, now), looks)
        for point in observation.checkpoints
    ]
    return min(beats, key=lambda beat: _BY_WEIGHT.index(beat.pulse))


def overlong(policy: HeartbeatPolicy, observation: Observation) -> tuple[Sign, ...]:
    """Return what takes longer than it may: batches in flight, and starts without a commit."""
    claim = observation.claim
    if claim is None:
        return ()
    found = [_overlong(policy, point, claim, observation.now) for point in observation.checkpoints]
    return tuple(each.sign for each in found if each)


def overlong_batches(
    policy: HeartbeatPolicy, observation: Observation, looks: Looks | None = None
) -> tuple[Stall, ...]:
    """Return the batches in flight that take longer than they may; with a watcher's `looks`, those that it found twice.

    A start without a commit is none: it may restore its state.
    """
    claim = observation.claim
    if claim is None or claim.generation != observation.generation:
        return ()
    found = [(point, _overlong(policy, point, claim, observation.now)) for point in observation.checkpoints]
    return tuple(
        _stall(point, claim, overlong, observation.now, looks)
        for point, overlong in found
        if overlong
        and overlong.unconfirmed is Pulse.SLOW
        and (point.clock is None or may_hang(point.clock, read_twice=looks is not None))
        and (looks is None or looks.age(overlong.sign) >= overlong.limit * CONFIRMS)
    )


def _stall(point: Checkpoint, claim: Claim, overlong: Overlong, now: datetime, looks: Looks | None) -> Stall:
    planned, at = not _between(point), point.position
    if point.clock:
        lasts, unit = now - (point.last_commit or now), point.clock.unit
        return Stall(
            claim.generation, claim.nonce, point.path, at.commit + 1, overlong.limit, lasts, unit=unit, overdue=True
        )
    batch = at.offset if planned else at.commit + 1
    # Input waits for as long as somebody saw it wait: the last plan may be of last week.
    lasts = now - point.offsets[batch] if planned else looks.age(overlong.sign) if looks else timedelta()
    return Stall(claim.generation, claim.nonce, point.path, batch, overlong.limit, lasts, planned)


def verified(observation: Observation) -> bool:
    """Return True if every checkpoint has a commit that is newer than the generation's claim."""
    if observation.claim is None or not observation.checkpoints:
        return False
    return all(_advanced(point, observation.claim) for point in observation.checkpoints)


def works(policy: FailurePolicy, observation: Observation) -> bool:
    """Return whether the generation committed, or has run long enough that its source may just bring nothing."""
    claim, app = observation.claim, observation.current
    lives = observation.now - claim.claimed_at if claim else timedelta()
    runs = app is not None and app.state is ApplicationState.RUNNING
    return runs and (verified(observation) or lives >= policy.stable_after)


def queued_since(observation: Observation) -> datetime | None:
    """Return since when, by the ResourceManager's clock, YARN has not started the current application; None if it did,
    or if there is none alive."""
    app = observation.current
    if app is None or not app.alive or app.state is ApplicationState.RUNNING:
        return None
    return app.started


def stall_threshold(policy: HeartbeatPolicy, point: Checkpoint) -> timedelta:
    """Return the time a batch may take: the floor, or a multiple of the 99th percentile of the query's own history.

    Of checkpoints that come by the clock, the engine tells it.
    """
    if point.clock:
        return point.clock.limit
    durations = sorted(point.durations()[1:])
    if not durations:
        return policy.stall_floor
    p99 = durations[min(len(durations) - 1, int(len(durations) * 0.99))]
    return max(policy.stall_floor, p99 * policy.stall_factor)


def rests(policy: HeartbeatPolicy, point: Checkpoint, now: datetime) -> bool:
    """Return whether every planned batch is committed, and that for longer than a batch may take."""
    moved = point.last_move
    between = not point.empty and point.position.offset <= point.position.commit
    return between and moved is not None and now - moved > stall_threshold(policy, point)


def planning_threshold(policy: HeartbeatPolicy, point: Checkpoint) -> timedelta:
    """Return the time for which input may wait for a plan: as a batch may take, or a multiple of the longest times
    between the plans of the query's own history, as for one that a trigger starts once an hour."""
    intervals = sorted(point.intervals())
    if not intervals:
        return stall_threshold(policy, point)
    p99 = intervals[min(len(intervals) - 1, int(len(intervals) * 0.99))]
    return max(stall_threshold(policy, point), p99 * policy.stall_factor)


def _overlong(policy: HeartbeatPolicy, point: Checkpoint, claim: Claim, now: datetime) -> Overlong | None:
    if point.clock:
        return overlong_by_clock(policy, point, point.clock, claim, now, advanced=_advanced(point, claim))
    beat = _pulse(policy, point, claim, now)
    if beat.pulse is Pulse.START_STALLED:
        sign = Sign(SignKind.OVERLONG, (point.path, "start", claim.nonce))
        return Overlong(sign, policy.start_timeout, Pulse.STARTING)
    if beat.pulse is Pulse.STALLED and _between(point):
        sign = Sign(SignKind.OVERLONG, (point.path, point.query, point.position.commit, "unplanned"))
        return Overlong(sign, planning_threshold(policy, point), Pulse.SLOW)
    if beat.pulse is Pulse.STALLED:
        sign = Sign(SignKind.OVERLONG, (point.path, point.query, point.position.offset))
        return Overlong(sign, stall_threshold(policy, point), Pulse.SLOW)
    return None


def _confirmed(beat: Heartbeat, overlong: Overlong | None, looks: Looks | None) -> Heartbeat:
    if overlong is None or looks is None or beat.pulse not in _UNCONFIRMED or beat.starving:
        return beat
    wait = overlong.limit * CONFIRMS - looks.age(overlong.sign)
    if wait <= timedelta():
        return beat
    why = f"{beat.why}; it counts as stalled if that is so in {format_duration(wait)}"
    return Heartbeat(overlong.unconfirmed, beat.commit_age, why)


def _changed(point: Checkpoint, looks: Looks | None, *, runs: bool) -> Heartbeat | None:
    """Return the heartbeat of a running job whose checkpoint is not what it was, None for any other."""
    before = looks.furthest.get(point.path) if looks else None
    if not (runs and before and before.offset >= 0):
        return None
    words = "; ".join(changes(point, before))
    return Heartbeat(Pulse.CHANGED, None, f"{words}, while the job runs") if words else None


def _of_dstreams(point: Checkpoint, now: datetime) -> Heartbeat | None:
    """Return the heartbeat of a job of DStreams, None for any other: its files tell nothing of its batches."""
    if point.dstreams is None or not point.empty:
        return None
    age = now - point.dstreams
    written = f"{point.path} is a checkpoint of DStreams, written {format_duration(age)} ago"
    return Heartbeat(Pulse.UNKNOWN, age, f"{written}: their batches are not watched")


def _nowhere(
    policy: HeartbeatPolicy, point: Checkpoint, claim: Claim, now: datetime, *, runs: bool
) -> Heartbeat | None:
    """Return the heartbeat of a job that runs and does not write the folder that is declared, None for any other."""
    waited = now - claim.claimed_at
    if point.clock or not (runs and point.absent and waited > policy.start_timeout):
        return None
    why = f"no query has written to {point.path} in {format_duration(waited)}: is it the folder that the job writes?"
    return Heartbeat(Pulse.NO_CHECKPOINT, None, why)


def _pulse(
    policy: HeartbeatPolicy,
    point: Checkpoint,
    claim: Claim,
    now: datetime,
    looks: Looks | None = None,
    *,
    runs: bool = True,
) -> Heartbeat:
    age = now - point.last_commit if point.last_commit else None
    if point.clock and runs:
        return beat_by_clock(policy, point, point.clock, claim, now, looks, advanced=_advanced(point, claim))
    if not _advanced(point, claim):
        return _starting(policy, claim, now, age)
    if _between(point):
        return _between_batches(policy, point, now, age)
    in_flight = now - point.offsets[point.position.offset]
    limit = stall_threshold(policy, point)
    batch = f"batch {point.position.offset} has been in flight for {format_duration(in_flight)}"
    if in_flight > limit:
        return Heartbeat(Pulse.STALLED, age, f"{batch}, longer than {format_duration(limit)}")
    return Heartbeat(Pulse.HEALTHY, age, batch)


def _starting(policy: HeartbeatPolicy, claim: Claim, now: datetime, age: timedelta | None) -> Heartbeat:
    waited = now - claim.claimed_at
    why = f"no new commit in the {format_duration(waited)} since generation {claim.generation} was claimed"
    return Heartbeat(Pulse.START_STALLED if waited > policy.start_timeout else Pulse.STARTING, age, why)


def _between(point: Checkpoint) -> bool:
    return point.position.offset <= point.position.commit


def _between_batches(policy: HeartbeatPolicy, point: Checkpoint, now: datetime, age: timedelta | None) -> Heartbeat:
    committed = f"batch {point.position.commit} is committed"
    if age is not None and age <= stall_threshold(policy, point):
        return Heartbeat(Pulse.HEALTHY, age, committed)
    since, waits = f"{committed} and none is planned since", point.backlog
    if waits is None:
        return Heartbeat(Pulse.IDLE, age, f"{since}: no input, or blocked before planning")
    if waits.records is None:
        return Heartbeat(Pulse.IDLE, age, f"{since}; whether input waits is not known: {waits.why}")
    if not waits.records:
        return Heartbeat(Pulse.IDLE, age, f"{since}: nothing waits in Kafka")
    words = f"{since}, although {waits.records} records wait in {', '.join(waits.topics)}"
    moved, limit = now - (point.last_move or now), planning_threshold(policy, point)
    if moved <= limit:
        return Heartbeat(Pulse.IDLE, age, words)
    return Heartbeat(Pulse.STALLED, age, f"{words}; the last plan is {format_duration(moved)} old")


def _advanced(point: Checkpoint, claim: Claim) -> bool:
    """Return True if it moved on since the claim; if its position then is unknown, if its last commit is newer."""
    if Missing.POSITIONS in claim.file.missing:
        return point.last_commit is not None and point.last_commit > claim.claimed_at
    before = claim.position_of(point.path) or Position(None, -1, -1)
    anew = before.query is not None and point.query is not None and point.query != before.query
    return point.position.commit > (-1 if anew else before.commit)
