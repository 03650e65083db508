"""The next step for a stream, from one look at it.

The step depends on nothing but the observation: if a supervisor dies between two steps, the next one that looks
continues, in any process (Algorithm C as a function). No step ever starts generation n+1 while anything of
generation n may still write the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.contract import started_marker, stop_marker, stopped_marker
from airflow_kstream.model.streams.declarations import Change
from airflow_kstream.model.streams.generation import Age, Claim, DesiredState, Missing
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.looks import Looks, SignKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import GiveUp, Kill, Phase, Refuse, Settled, Step, Stop, Submit, Wait
from airflow_kstream.model.streams.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.checkpoint.positions import position_doubt
from airflow_kstream.policy.streams.ends.after_end import (
    ended_at,
    ended_by,
    how_it_ended,
    pause_after_end,
    reason_to_follow,
    recorded_end,
)
from airflow_kstream.policy.streams.ends.death import Dead, death, ran, unwritten
from airflow_kstream.policy.streams.ends.starvation import dead_launch_token
from airflow_kstream.policy.streams.ends.unclaimed import unclaimed
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.horizon.refresh import due_push, due_revocation, pushes_first
from airflow_kstream.policy.streams.restart.former_spec import (
    DECLARED_SPEC_CHANGED,
    SpecChange,
    another_engine,
    words_of,
)
from airflow_kstream.policy.streams.restart.freeze import held_by_freeze, left_as

# The states in which a stream is as it should be, and what an ended generation left is looked after.
_TIDY = {Phase.RUNNING, Phase.STOPPED}


class Mode(StrEnum):
    """The reaction to a stream that ended by itself: ENSURE starts it; WATCH tells it first if a person is needed."""

    ENSURE = "ensure"
    WATCH = "watch"


def next_step(spec: StreamSpec, observation: Observation, looks: Looks, mode: Mode) -> Step:
    """Decide what to do now. `looks` says how long this supervisor has seen what it sees, by its own clock."""
    step = _wanted_step(spec, observation, looks, mode)
    # What a newer supervisor claimed is its own to tidy.
    left_alone = observation.claim is not None and observation.claim.foreign
    if isinstance(step, Settled) and step.phase in _TIDY and not left_alone:
        step = due_revocation(observation) or step
    return held_by_freeze(step, observation)


def _wanted_step(spec: StreamSpec, observation: Observation, looks: Looks, mode: Mode) -> Step:
    if observation.desired.state is DesiredState.HELD:
        why = observation.desired.reason or "no reason given"
        held = f"held by {_who(observation)} until `kstream streams start {spec.name}`: {why}"
        return Settled(Phase.HELD, f"{held}; {left_as(observation)}")
    if observation.claim and observation.claim.foreign:
        return _hands_off(spec, observation, observation.claim)
    if left_alone := unclaimed(spec, observation, looks):
        return left_alone
    for app in _intruders(observation):
        return Kill(app.id, f"only one application of generation {observation.generation} may write the checkpoint")
    current, change = observation.current, SpecChange(spec, observation)
    if current and current.alive:
        return _living(change, current, looks)
    return _dead(change, looks, mode)


def _hands_off(spec: StreamSpec, observation: Observation, claim: Claim) -> Step:
    """Do nothing: a supervisor of another version has claimed it, and its intentions are unknown."""
    app = observation.current
    why = f"generation {claim.generation} is left alone: {claim.doubt}"
    if app and app.alive:
        phase = Phase.RUNNING if app.state is ApplicationState.RUNNING else Phase.STARTING
        return Settled(phase, f"{app.id} is {app.state}; {why}")
    if observation.desired.state is DesiredState.STOPPED:
        return Settled(Phase.STOPPED, f"{_stopped(spec, observation)}; {why}")
    if app is None and observation.now < claim.claimed_at + spec.submit.ttl:
        return Settled(Phase.STARTING, f"its application may still arrive; {why}")
    upgrade = "; start it where it was claimed, or upgrade this program" if claim.file.age is Age.NEWER else ""
    return Refuse(f"no application of it runs, and {why}{upgrade}")


def _intruders(observation: Observation) -> list[Application]:
    """Return what must not live beside the current application, or beside a newer claim whose application may come."""
    keep = observation.current
    return [app for _, app in observation.applications if app.alive and (keep is None or app.id != keep.id)]


def _living(change: SpecChange, app: Application, looks: Looks) -> Step:
    spec, observation = change.spec, change.observation
    ends = horizon_of(spec, observation)
    why = _reason_to_stop(change, ends, looks)
    if why:
        begun = stop_marker(observation.generation) in observation.files
        forced = ends is not None and ends.forced(observation.now)
        wanted_again = observation.desired.state is DesiredState.RUNNING
        followed = wanted_again and not begun
        another = another_engine(spec, observation) if followed else ""
        optional = followed and (not forced or bool(another))
        obstacle = another or (position_doubt(observation, looks) if optional else None)
        return Stop(observation.generation, app.id, why, preflight=optional, obstacle=obstacle or "")
    if push := due_push(spec, observation, ends):
        return push
    if app.state is ApplicationState.RUNNING:
        return Settled(Phase.RUNNING, f"{app.id} is RUNNING")
    return Settled(Phase.STARTING, f"{app.id} is {app.state}")


def _reason_to_stop(change: SpecChange, ends: Horizon | None, looks: Looks) -> str | None:
    """Return the first reason that holds, None if none does; a stop that was begun is always finished."""
    observation = change.observation
    number, desired, wanted = observation.generation, observation.desired, change.spec.on_change is OnChange.RESTART
    dead_token = dead_launch_token(observation, looks)
    due = ends is not None and ends.due(observation.now) and not pushes_first(change.spec, observation, ends)
    changed = wanted and change.failed is None and change.difference.change is Change.CHANGED
    reasons = (
        (desired.state is DesiredState.STOPPED, f"{_who(observation)} wants it stopped"),
        (stop_marker(number) in observation.files, "its stop was begun"),
        (desired.restarts(number), _requested(observation)),
        (due, _horizon_words(ends, observation.now)),
        (changed, DECLARED_SPEC_CHANGED),
        (bool(dead_token), f"nothing of it works, and its new workers have a dead token: {dead_token}"),
        (_lost_its_fence(observation), "it was given up as it arrived, and without its fence no executor can join it"),
    )
    return next((why for holds, why in reasons if holds), None)


def _lost_its_fence(observation: Observation) -> bool:
    """Return True if a generation runs although somebody gave it up: YARN localised its fence before it was deleted."""
    claim, app = observation.claim, observation.current
    return (
        claim is not None
        and claim.submitted_by_us
        and claim.generation == observation.generation
        and claim.fence not in observation.files
        and app is not None
        and app.state is ApplicationState.RUNNING
    )


def _horizon_words(ends: Horizon | None, now: datetime) -> str:
    if ends is None:
        return ""
    if ends.reason is HorizonReason.NO_NEW_WORKERS and ends.replacement:
        return ends.replacement.words(now)
    left = ends.remaining(now)
    if left is None:
        when = "is not known"
    else:
        when = f"is {format_duration(left)} away" if left >= timedelta() else f"was {format_duration(-left)} ago"
    return f"its horizon {when}: {ends.why}"


def _who(observation: Observation) -> str:
    return observation.desired.speaker or "somebody"


def _requested(observation: Observation) -> str:
    """Say who requested a restart, and why, if they said it."""
    words, reason = f"{_who(observation)} requested a restart", observation.desired.reason
    return f"{words}: {reason}" if reason else words


def _stopped(spec: StreamSpec, observation: Observation) -> str:
    return f"it is stopped, as {_who(observation)} wants, until `kstream streams start {spec.name}`"


def _dead(change: SpecChange, looks: Looks, mode: Mode) -> Step:
    spec, observation = change.spec, change.observation
    app, number = observation.current, observation.generation
    if app is None and (pending := _arrival_pending(spec, observation, looks)):
        return pending
    if observation.desired.state is DesiredState.STOPPED:
        return Settled(Phase.STOPPED, _stopped(spec, observation))
    if (
        app is None
        and observation.claim
        and Missing.ADOPTED in observation.claim.file.missing
        and not _accepted(observation)
    ):
        return Refuse(
            f"no application carries the tag of generation {number}, and {observation.claim.doubt}: one may run. If it "
            "does, take it up with `kstream streams adopt SPEC.yaml --application-id ID` (`yarn application -list` "
            f"tells the ID); if none does, let generation {number + 1} follow with `kstream streams accept SPEC.yaml`"
        )
    if number == 0:
        return _submit_once_dead(change, looks, "its first generation")
    if why := _planned_end(observation):
        return _submit_once_dead(change, looks, why)
    return _after_an_end(change, looks, mode)


def _after_an_end(change: SpecChange, looks: Looks, mode: Mode) -> Step:
    """Return the step after an end that nobody planned. A job that succeeded says itself that it is done.

    Who starts it all the same does so at a pace: it may succeed every minute.
    """
    spec, observation = change.spec, change.observation
    app, number, ends = observation.current, observation.generation, horizon_of(spec, observation)
    past_horizon = ends is not None and ends.passed(ended_by(observation))
    if app and app.succeeded and not past_horizon and mode is Mode.WATCH and not recorded_end(observation):
        return Settled(Phase.ENDED, how_it_ended(observation))
    if pause := pause_after_end(spec, observation, past_horizon=past_horizon):
        return pause
    why = f"generation {number} ended past its horizon" if past_horizon else reason_to_follow(observation)
    return _submit_once_dead(change, looks, why)


def _arrival_pending(spec: StreamSpec, observation: Observation, looks: Looks) -> Step | None:
    """Return the step for a claim without an application, None if it is known what became of it.

    One that ran has vanished: a ResourceManager that has just started lists nothing, and an old one forgets. Its fence
    is never taken. Another may arrive until the claim times out or is fenced off.
    """
    claim, waited = observation.claim, looks.age_of(SignKind.ABSENT)
    if claim is None or claim.generation < observation.generation:
        return None
    if ran(observation):
        return _vanished(spec, observation, claim, looks)
    if claim.fence not in observation.files:
        return None
    if waited < spec.submit.ttl:
        until = observation.now + spec.submit.ttl - waited
        return Wait(until, f"generation {claim.generation} was claimed and its application may still arrive")
    within = format_duration(spec.submit.ttl)
    return GiveUp(claim.generation, claim.fence, f"no application of generation {claim.generation} within {within}")


def _vanished(spec: StreamSpec, observation: Observation, claim: Claim, looks: Looks) -> Step | None:
    """Wait until a ResourceManager that recovers would list it. A stop that was begun and has left nothing is over."""
    number, waited = claim.generation, looks.age_of(SignKind.ABSENT)
    stopped = observation.desired.state is DesiredState.STOPPED and stop_marker(number) in observation.files
    if stopped or stopped_marker(number) in observation.files or waited >= spec.watch.recovery_wait:
        return None
    until = observation.now + spec.watch.recovery_wait - waited
    return Wait(until, f"generation {number} ran, and YARN lists no application of it: it may not have recovered them")


def _planned_end(observation: Observation) -> str | None:
    """Return the reason for a successor if somebody wanted this end, or has spoken since it; None if nobody has."""
    number, spoken, since = observation.generation, observation.desired.at, ended_at(observation)
    reasons = (
        (stop_marker(number) in observation.files, f"generation {number} was stopped to be followed"),
        (observation.desired.restarts(number), _requested(observation)),
        (spoken is not None and since is not None and spoken >= since, f"{_who(observation)} wants it to run again"),
        (_accepted(observation), f"generation {number + 1} was accepted by a person"),
    )
    return next((why for holds, why in reasons if holds), None)


def _accepted(observation: Observation) -> bool:
    """Return True if a person let the next generation follow, knowing what became of this one."""
    return observation.folder.accepted is not None


def _submit_once_dead(change: SpecChange, looks: Looks, why: str) -> Step:
    """Submit the next generation once nothing of the last one can still write, and the checkpoints are its own."""
    spec, observation = change.spec, change.observation
    if doubt := position_doubt(observation, looks):
        return Refuse(doubt)
    verdict = death(spec, observation, looks)
    if not isinstance(verdict, Dead):
        return verdict
    if fence := _standing_fence(observation):
        return GiveUp(observation.generation, fence, f"{verdict.proof}, and its application must not arrive late")
    return Submit(observation.next_generation, "; ".join(_words(change, why, verdict)), change.former)


def _words(change: SpecChange, why: str, verdict: Dead) -> Iterator[str]:
    spec, observation = change.spec, change.observation
    yield why
    if observation.generation:
        yield verdict.proof
    if change.former:
        yield words_of(change.former)
    for point in unwritten(spec, observation):
        yield f"{point.path} has no file, so nothing of it is watched: is it the folder that the job writes?"


def _standing_fence(observation: Observation) -> str | None:
    """Return the fence of a claim whose application is dead or never came, as far as anybody can tell: the commits
    after the claim may be another writer's. None if its driver reported its start, which no late arrival does twice."""
    claim = observation.claim
    if claim is None or not claim.submitted_by_us or observation.current or claim.generation < observation.generation:
        return None
    return claim.fence if claim.fence in observation.files and not _started(observation) else None


def _started(observation: Observation) -> bool:
    return started_marker(observation.generation) in observation.files
