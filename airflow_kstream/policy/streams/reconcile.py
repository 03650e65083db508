"""The next step for a stream, from one look at it.

The step depends on nothing but the observation: if a supervisor dies between two steps, the next one that looks
continues, in any process (Algorithm C as a function). No step ever starts generation n+1 while anything of
generation n may still write the checkpoint.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.contract import stop_marker, stopped_marker
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.generation import Claim, DesiredState, Missing
from airflow_kstream.model.horizon import Horizon
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.plan import GiveUp, Kill, Phase, Refuse, Settled, Step, Stop, Submit, Wait
from airflow_kstream.model.spec_fingerprint import Change
from airflow_kstream.model.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.horizon import horizon
from airflow_kstream.policy.streams.spec_change import spec_change


class Mode(StrEnum):
    """The reaction to a stream that ended by itself: ENSURE starts it; WATCH reports the end to the supervisor."""

    ENSURE = "ensure"
    WATCH = "watch"


def next_step(spec: StreamSpec, seen: Observation, first_look: datetime, mode: Mode) -> Step:
    """Decide what to do now. `first_look` is when this reconcile first looked: if the checkpoint moved since then while
    none of our applications lived, somebody else writes it."""
    if seen.desired.state is DesiredState.HELD:
        return Settled(Phase.HELD, f"held by {_who(seen)}: {seen.desired.reason or 'no reason given'}")
    if seen.claim and seen.claim.newer:
        return _hands_off(spec, seen, seen.claim)
    if seen.claim and seen.claim.generation < seen.generation:
        # Claimed and submitted between the two halves of this check; an old claim tells nothing of the new application.
        return Wait(seen.now, f"generation {seen.generation} appeared while we looked")
    for app in _intruders(seen):
        return Kill(app.id, f"only generation {seen.generation}'s newest application may write the checkpoint")
    current = seen.current
    if current and current.alive:
        return _living(spec, seen, current)
    return _dead(spec, seen, first_look, mode)


def horizon_of(spec: StreamSpec, seen: Observation) -> Horizon | None:
    """Return the horizon of the running generation; None before the first."""
    if seen.claim is None:
        return None
    return horizon(spec.restart, seen.claim, seen.now, seen.time_left, seen.key_at_hand, seen.renewal_ratio)


def silence_needed(spec: StreamSpec, seen: Observation) -> timedelta:
    """Return the time a checkpoint must not move before its writer counts as gone: at least two median batches."""
    durations = sorted(duration for point in seen.checkpoints for duration in point.durations())
    median = durations[len(durations) // 2] if durations else timedelta()
    return max(spec.stop.silence, 2 * median)


def _hands_off(spec: StreamSpec, seen: Observation, claim: Claim) -> Step:
    """Do nothing: a newer supervisor has claimed it, and its intentions are unknown."""
    app = seen.current
    why = f"generation {claim.generation} is left alone: {claim.doubt}"
    if app and app.alive:
        phase = Phase.RUNNING if app.state is ApplicationState.RUNNING else Phase.STARTING
        return Settled(phase, f"{app.id} is {app.state}; {why}")
    if seen.desired.state is DesiredState.STOPPED:
        return Settled(Phase.STOPPED, f"{_who(seen)} wants it stopped; {why}")
    if app is None and seen.now < claim.claimed_at + spec.submit.ttl:
        return Settled(Phase.STARTING, f"its application may still arrive; {why}")
    return Refuse(f"no application of it runs, and {why}; start it where it was claimed, or upgrade this program")


def _intruders(seen: Observation) -> list[Application]:
    keep = seen.current
    return [app for _, app in seen.applications if app.alive and keep is not None and app.id != keep.id]


def _living(spec: StreamSpec, seen: Observation, app: Application) -> Step:
    why = _reason_to_stop(spec, seen)
    if why:
        ends = horizon_of(spec, seen)
        begun = stop_marker(seen.generation) in seen.files
        forced = ends is not None and ends.forced(seen.now)
        wanted_again = seen.desired.state is DesiredState.RUNNING
        return Stop(seen.generation, app.id, why, preflight=wanted_again and not begun and not forced)
    if app.state is ApplicationState.RUNNING:
        return Settled(Phase.RUNNING, f"{app.id} is RUNNING")
    return Settled(Phase.STARTING, f"{app.id} is {app.state}")


def _reason_to_stop(spec: StreamSpec, seen: Observation) -> str | None:
    """Return the first reason that holds, None if none does; a stop that was begun is always finished."""
    number, desired, claim = seen.generation, seen.desired, seen.claim
    ends = horizon_of(spec, seen)
    reasons = (
        (desired.state is DesiredState.STOPPED, f"{_who(seen)} wants it stopped"),
        (stop_marker(number) in seen.files, "its stop was begun"),
        (desired.restart_up_to >= number, f"{_who(seen)} requested a restart"),
        (ends is not None and ends.due(seen.now), _horizon_words(ends, seen.now)),
        (spec.on_change is OnChange.RESTART and _changed(spec, claim), "the declared spec changed"),
    )
    return next((why for holds, why in reasons if holds), None)


def _changed(spec: StreamSpec, claim: Claim | None) -> bool:
    return spec_change(spec, claim).change is Change.CHANGED


def _horizon_words(ends: Horizon | None, now: datetime) -> str:
    left = ends.remaining(now) if ends else None
    away = "not known" if left is None else f"{format_duration(left)} away"
    return f"its horizon is {away}: {ends.reason}" if ends else ""


def _who(seen: Observation) -> str:
    return seen.desired.by or "somebody"


def _dead(spec: StreamSpec, seen: Observation, first_look: datetime, mode: Mode) -> Step:
    app, number = seen.current, seen.generation
    if app is None and (pending := _arrival_pending(spec, seen)):
        return pending
    if seen.desired.state is DesiredState.STOPPED:
        return Settled(Phase.STOPPED, f"{_who(seen)} wants it stopped")
    if app is None and seen.claim and Missing.ADOPTED in seen.claim.missing:
        return Refuse(f"no application carries the tag of generation {number}, and {seen.claim.doubt}: one may run")
    if number == 0:
        return _submit_when_silent(spec, seen, first_look, "its first generation")
    why = _reason_to_follow(spec, seen, app)
    if why is None and mode is Mode.WATCH and app is not None:
        return Settled(Phase.ENDED, f"{app.id} ended by itself: {app.state}/{app.final_status}")
    return _submit_when_silent(spec, seen, first_look, why or f"generation {number} ended by itself")


def _arrival_pending(spec: StreamSpec, seen: Observation) -> Step | None:
    """Return the step for a claim without an application: one may arrive until the claim times out or is fenced off."""
    claim = seen.claim
    if claim is None or claim.fence not in seen.files:
        return None
    until = claim.claimed_at + spec.submit.ttl
    if seen.now < until:
        return Wait(until, f"generation {claim.generation} was claimed and its application may still arrive")
    waited = format_duration(spec.submit.ttl)
    return GiveUp(claim.generation, claim.fence, f"no application of generation {claim.generation} within {waited}")


def _reason_to_follow(spec: StreamSpec, seen: Observation, app: Application | None) -> str | None:
    """Return the reason to replace a dead generation without a new request, None if there is none."""
    number = seen.generation
    ends = horizon_of(spec, seen)
    reasons = (
        (app is None, f"generation {number} left no application"),
        (stop_marker(number) in seen.files, f"generation {number} was stopped to be followed"),
        (seen.desired.restart_up_to >= number, f"{_who(seen)} requested a restart"),
        (app is not None and app.lost_its_token, f"generation {number} died of a dead token"),
        (ends is not None and ends.passed(seen.now), f"generation {number} ended past its horizon"),
    )
    return next((why for holds, why in reasons if holds), None)


def _submit_when_silent(spec: StreamSpec, seen: Observation, first_look: datetime, why: str) -> Step:
    """Submit the next generation once nothing of the last one can still write."""
    number = seen.generation
    if number and stopped_marker(number) in seen.files:
        return Submit(number + 1, why)
    quiet_from = max(_last_signs(seen), default=None)
    needed = silence_needed(spec, seen)
    if quiet_from is None or seen.now >= quiet_from + needed:
        return Submit(number + 1, why)
    alone_since = max(
        [first_look, *([seen.current.finished + needed] if seen.current and seen.current.finished else [])]
    )
    if seen.last_move and seen.last_move > alone_since and seen.now - alone_since > 2 * needed:
        return Refuse(
            f"the checkpoint moved at {quiet_from:%H:%M:%S} though no application of this stream lives: "
            "somebody else writes it; stop that job, or take it over with `kstream streams adopt`"
        )
    return Wait(quiet_from + needed, f"the checkpoint must be silent for {format_duration(needed)}")


def _last_signs(seen: Observation) -> list[datetime]:
    signs = [seen.last_move, seen.current.finished if seen.current else None]
    return [sign for sign in signs if sign is not None]
