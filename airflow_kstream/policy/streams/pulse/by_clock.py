"""The pulse of a job whose checkpoints come by the clock: also an idle source completes them, so silence is a sign.

Its engine tells how old the newest may be, what the process that leads says of the next one, and how many processes
work. Without the leader's word the checkpoint alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.checkpoint import Checkpoint, Clockwork
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.looks import Looks, Sign, SignKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stall import Heartbeat, Pulse
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy

# YARN replaces a process within a minute.
STARVES = timedelta(minutes=2)
# Restarts inside without a new checkpoint that are a loop: a node that dies may cost one or two.
LOOP = 3
# Of the limit: until then a job that reads records counts as slow. Somebody has to know then what a failure costs.
_BACKED_UP = 3.0


@dataclass(frozen=True)
class Overlong:
    """A batch, a start, or a wait for the next plan, that has taken longer than `limit`."""

    sign: Sign
    limit: timedelta
    unconfirmed: Pulse


def starves(observation: Observation) -> bool:
    """Return whether the newest application runs, and no process of it works."""
    app = observation.current
    runs = app is not None and app.state is ApplicationState.RUNNING
    return runs and any(point.clock is not None and point.clock.workers == 0 for point in observation.checkpoints)


def start_limit(policy: HeartbeatPolicy, clock: Clockwork) -> timedelta:
    """Return the time in which the first checkpoint has to come: no sooner than the clock allows it."""
    return policy.start_timeout + (clock.interval or timedelta())


def overlong_by_clock(
    policy: HeartbeatPolicy, point: Checkpoint, clock: Clockwork, claim: Claim, now: datetime, *, advanced: bool
) -> Overlong | None:
    """Return what takes longer than it may: the next checkpoint, or the first of this generation.

    A checkpoint before which the job restarts again and again counts at any age. Restarts count from the newest
    completed checkpoint on, so those of an outage that is over don't.
    """
    loops = clock.restarts >= LOOP
    if not advanced:
        limit, sign = start_limit(policy, clock), Sign(SignKind.OVERLONG, (point.path, "start", claim.nonce))
        return Overlong(sign, limit, Pulse.STARTING) if loops or now - claim.claimed_at > limit else None
    age = now - (point.last_commit or now)
    sign = Sign(SignKind.OVERLONG, (point.path, point.position.commit))
    return Overlong(sign, clock.limit, Pulse.SLOW) if loops or age > clock.limit else None


def may_hang(clock: Clockwork, *, read_twice: bool) -> bool:
    """Return whether an overdue checkpoint may be a hang, which a restart ends.

    It is none while no process works, while the job restarts itself, or while it reads records: then it is backed up.
    Where that can't be told, as for a job with a single vertex, a watcher that has `read_twice` takes it for one that
    reads. Who looks once can't tell it of any job, and goes by the watcher's word.
    """
    reads = clock.moves is not False if read_twice else bool(clock.moves)
    return not reads and clock.workers != 0 and clock.restarts < LOOP


def beat_by_clock(
    policy: HeartbeatPolicy,
    point: Checkpoint,
    clock: Clockwork,
    claim: Claim,
    now: datetime,
    looks: Looks | None,
    *,
    advanced: bool,
) -> Heartbeat:
    """Return the heartbeat of a job that runs, before a second look confirms it."""
    age = now - point.last_commit if point.last_commit else None
    newest = f"{clock.unit} {point.position.commit}"
    if starving := _starving(policy, clock, claim, now, age, looks, advanced=advanced):
        return starving
    if clock.restarts >= LOOP:
        words = f"it restarted {clock.restarts} times inside since {newest}"
        return Heartbeat(Pulse.STALLED, age, _with(words, clock.trouble))
    if not advanced or age is None:
        waited = now - claim.claimed_at
        words = f"no new {clock.unit} in the {format_duration(waited)} since generation {claim.generation} was claimed"
        late = waited > start_limit(policy, clock)
        return Heartbeat(Pulse.START_STALLED if late else Pulse.STARTING, age, _with(words, clock.trouble))
    if age <= clock.limit:
        return Heartbeat(Pulse.HEALTHY, age, f"{newest} is {format_duration(age)} old")
    words = f"{newest} is the newest and {format_duration(age)} old, longer than {format_duration(clock.limit)}"
    words = _with(words, clock.trouble)
    if clock.moves and age <= clock.limit * _BACKED_UP:
        return Heartbeat(Pulse.SLOW, age, f"{words}; the job reads records, so it is backed up")
    if clock.moves is None and clock.workers != 0:
        words = f"{words}; whether the job reads records can't be told, so no restart comes of it"
    return Heartbeat(Pulse.STALLED, age, words)


def _starving(
    policy: HeartbeatPolicy,
    clock: Clockwork,
    claim: Claim,
    now: datetime,
    age: timedelta | None,
    looks: Looks | None,
    *,
    advanced: bool,
) -> Heartbeat | None:
    """Return the heartbeat of a job for which no process works, None for any other.

    Who looks once takes the time since the newest checkpoint, as far as another one was due by then.
    """
    if clock.workers != 0:
        return None
    reason = "YARN has given it no container" if clock.waits else clock.refusal or clock.trouble
    words = _with(f"no {clock.worker} works for it", reason)
    overdue = max((age or timedelta()) - (clock.interval or timedelta()), timedelta())
    lasts = looks.age_of(SignKind.STARVING) if looks else overdue
    late = lasts >= STARVES and (advanced or now - claim.claimed_at > policy.start_timeout)
    pulse = Pulse.STALLED if late else Pulse.SLOW if advanced else Pulse.STARTING
    return Heartbeat(pulse, age, words, starving=late)


def _with(words: str, trouble: str) -> str:
    return f"{words}: {trouble}" if trouble else words
