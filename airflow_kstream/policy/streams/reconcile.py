"""The next step for a stream, from one look at it.

The step depends on nothing but the observation: if a supervisor dies between two steps, the next one that looks
continues, in any process (Algorithm C as a function). No step ever starts generation n+1 while anything of
generation n may still write the checkpoint.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.contract import stop_marker, stopped_marker
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.generation import Claim, DesiredState, Missing
from airflow_kstream.model.generation_end import EndKind
from airflow_kstream.model.horizon import Horizon
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.plan import GiveUp, Kill, Phase, Refuse, Settled, Step, Stop, Submit, Wait
from airflow_kstream.model.spec_fingerprint import Change
from airflow_kstream.model.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.ends import end_of
from airflow_kstream.policy.streams.heartbeat import verified
from airflow_kstream.policy.streams.held import left_as
from airflow_kstream.policy.streams.horizon import horizon
from airflow_kstream.policy.streams.spec_change import DECLARED_SPEC_CHANGED, spec_change

# Ends by no fault of the job's own, and their words. A generation has to have worked for as long to be followed without
# a report: one that ends sooner ends the same way again and again, and nobody would learn of it.
_WORKED_FOR = timedelta(hours=1)
_BLAMELESS: Mapping[EndKind, str] = {
    EndKind.CREDENTIALS: "died of a dead token",
    EndKind.PREEMPTED: "was preempted",
    EndKind.NODE_LOST: "lost its node",
    EndKind.LIFETIME: "reached YARN's lifetime limit",
}
# In characters. YARN repeats whole stack traces; the first lines name the cause.
_LONGEST_DIAGNOSTICS = 300


class Mode(StrEnum):
    """The reaction to a stream that ended by itself: ENSURE starts it; WATCH reports the end to the supervisor."""

    ENSURE = "ensure"
    WATCH = "watch"


def next_step(spec: StreamSpec, observation: Observation, first_look: datetime, mode: Mode) -> Step:
    """Decide what to do now. `first_look` is when this reconcile first looked: if the checkpoint moved since then while
    none of our applications lived, somebody else writes it."""
    if observation.desired.state is DesiredState.HELD:
        why = observation.desired.reason or "no reason given"
        return Settled(Phase.HELD, f"held by {_who(observation)}: {why}; {left_as(observation)}")
    if observation.claim and observation.claim.newer:
        return _hands_off(spec, observation, observation.claim)
    if observation.claim and observation.claim.generation < observation.generation:
        # Claimed and submitted between the two halves of this check; an old claim tells nothing of the new application.
        return Wait(observation.now, f"generation {observation.generation} appeared while we looked")
    for app in _intruders(observation):
        return Kill(app.id, f"only generation {observation.generation}'s newest application may write the checkpoint")
    current = observation.current
    if current and current.alive:
        return _living(spec, observation, current)
    return _dead(spec, observation, first_look, mode)


def horizon_of(spec: StreamSpec, observation: Observation) -> Horizon | None:
    """Return the horizon of the running generation; None before the first."""
    if observation.claim is None:
        return None
    return horizon(
        spec.restart,
        observation.claim,
        observation.now,
        observation.time_left,
        observation.key_at_hand,
        observation.renewal_ratio,
    )


def silence_needed(spec: StreamSpec, observation: Observation) -> timedelta:
    """Return the time a checkpoint must not move before its writer counts as gone: at least two median batches."""
    durations = sorted(duration for point in observation.checkpoints for duration in point.durations())
    median = durations[len(durations) // 2] if durations else timedelta()
    return max(spec.stop.silence, 2 * median)


def _hands_off(spec: StreamSpec, observation: Observation, claim: Claim) -> Step:
    """Do nothing: a newer supervisor has claimed it, and its intentions are unknown."""
    app = observation.current
    why = f"generation {claim.generation} is left alone: {claim.doubt}"
    if app and app.alive:
        phase = Phase.RUNNING if app.state is ApplicationState.RUNNING else Phase.STARTING
        return Settled(phase, f"{app.id} is {app.state}; {why}")
    if observation.desired.state is DesiredState.STOPPED:
        return Settled(Phase.STOPPED, f"it is stopped, as {_who(observation)} wants; {why}")
    if app is None and observation.now < claim.claimed_at + spec.submit.ttl:
        return Settled(Phase.STARTING, f"its application may still arrive; {why}")
    return Refuse(f"no application of it runs, and {why}; start it where it was claimed, or upgrade this program")


def _intruders(observation: Observation) -> list[Application]:
    keep = observation.current
    return [app for _, app in observation.applications if app.alive and keep is not None and app.id != keep.id]


def _living(spec: StreamSpec, observation: Observation, app: Application) -> Step:
    why = _reason_to_stop(spec, observation)
    if why:
        ends = horizon_of(spec, observation)
        begun = stop_marker(observation.generation) in observation.files
        forced = ends is not None and ends.forced(observation.now)
        wanted_again = observation.desired.state is DesiredState.RUNNING
        return Stop(observation.generation, app.id, why, preflight=wanted_again and not begun and not forced)
    if app.state is ApplicationState.RUNNING:
        return Settled(Phase.RUNNING, f"{app.id} is RUNNING")
    return Settled(Phase.STARTING, f"{app.id} is {app.state}")


def _reason_to_stop(spec: StreamSpec, observation: Observation) -> str | None:
    """Return the first reason that holds, None if none does; a stop that was begun is always finished."""
    number, desired, claim = observation.generation, observation.desired, observation.claim
    ends = horizon_of(spec, observation)
    reasons = (
        (desired.state is DesiredState.STOPPED, f"{_who(observation)} wants it stopped"),
        (stop_marker(number) in observation.files, "its stop was begun"),
        (desired.restart_up_to >= number, f"{_who(observation)} requested a restart"),
        (ends is not None and ends.due(observation.now), _horizon_words(ends, observation.now)),
        (spec.on_change is OnChange.RESTART and _changed(spec, claim), DECLARED_SPEC_CHANGED),
    )
    return next((why for holds, why in reasons if holds), None)


def _changed(spec: StreamSpec, claim: Claim | None) -> bool:
    return spec_change(spec, claim).change is Change.CHANGED


def _horizon_words(ends: Horizon | None, now: datetime) -> str:
    left = ends.remaining(now) if ends else None
    away = "not known" if left is None else f"{format_duration(left)} away"
    return f"its horizon is {away}: {ends.reason}" if ends else ""


def _who(observation: Observation) -> str:
    return observation.desired.by or "somebody"


def _dead(spec: StreamSpec, observation: Observation, first_look: datetime, mode: Mode) -> Step:
    app, number = observation.current, observation.generation
    if app is None and (pending := _arrival_pending(spec, observation)):
        return pending
    if observation.desired.state is DesiredState.STOPPED:
        return Settled(Phase.STOPPED, f"it is stopped, as {_who(observation)} wants")
    if app is None and observation.claim and Missing.ADOPTED in observation.claim.missing:
        return Refuse(
            f"no application carries the tag of generation {number}, and {observation.claim.doubt}: one may run"
        )
    if number == 0:
        return _submit_when_silent(spec, observation, first_look, "its first generation")
    why = _reason_to_follow(spec, observation, app)
    if why is None and mode is Mode.WATCH and app is not None:
        return Settled(Phase.ENDED, _how_it_ended(app))
    return _submit_when_silent(spec, observation, first_look, why or f"generation {number} ended by itself")


def _how_it_ended(app: Application) -> str:
    why = textwrap.shorten(app.diagnostics, _LONGEST_DIAGNOSTICS, placeholder=" ...")
    words = f"{app.state}/{app.final_status}{f', {why}' if why else ''}"
    end = end_of(app.diagnostics)
    if end.kind is EndKind.KILLED:
        return f"{app.id} was killed by {end.killed_by}: {words}"
    cause = f" ({end.kind})" if end.kind is not EndKind.UNKNOWN else ""
    return f"{app.id} ended by itself{cause}: {words}"


def _arrival_pending(spec: StreamSpec, observation: Observation) -> Step | None:
    """Return the step for a claim without an application: one may arrive until the claim times out or is fenced off."""
    claim = observation.claim
    if claim is None or claim.fence not in observation.files:
        return None
    until = claim.claimed_at + spec.submit.ttl
    if observation.now < until:
        return Wait(until, f"generation {claim.generation} was claimed and its application may still arrive")
    waited = format_duration(spec.submit.ttl)
    return GiveUp(claim.generation, claim.fence, f"no application of generation {claim.generation} within {waited}")


def _reason_to_follow(spec: StreamSpec, observation: Observation, app: Application | None) -> str | None:
    """Return the reason to replace a dead generation without a new request, None if there is none."""
    number = observation.generation
    ends = horizon_of(spec, observation)
    blameless = _blameless_end(observation, app)
    reasons = (
        (app is None, f"generation {number} left no application"),
        (stop_marker(number) in observation.files, f"generation {number} was stopped to be followed"),
        (observation.desired.restart_up_to >= number, f"{_who(observation)} requested a restart"),
        (bool(blameless), f"generation {number} {blameless}"),
        (ends is not None and ends.passed(observation.now), f"generation {number} ended past its horizon"),
    )
    return next((why for holds, why in reasons if holds), None)


def _blameless_end(observation: Observation, app: Application | None) -> str:
    """Return how a generation that had worked for long ended without a fault of its own, empty if it didn't."""
    if app is None or not verified(observation) or not app.lasted or app.lasted < _WORKED_FOR:
        return ""
    return _BLAMELESS.get(end_of(app.diagnostics).kind, "")


def _submit_when_silent(spec: StreamSpec, observation: Observation, first_look: datetime, why: str) -> Step:
    """Submit the next generation once nothing of the last one can still write."""
    number = observation.generation
    if number and stopped_marker(number) in observation.files:
        return Submit(number + 1, why)
    quiet_from = max(_last_signs(observation), default=None)
    needed = silence_needed(spec, observation)
    if quiet_from is None or observation.now >= quiet_from + needed:
        return Submit(number + 1, why)
    alone_since = max(
        [
            first_look,
            *([observation.current.finished + needed] if observation.current and observation.current.finished else []),
        ]
    )
    if observation.last_move and observation.last_move > alone_since and observation.now - alone_since > 2 * needed:
        return Refuse(
            f"the checkpoint moved at {quiet_from:%H:%M:%S} though no application of this stream lives: "
            "somebody else writes it; stop that job, or take it over with `kstream streams adopt`"
        )
    return Wait(quiet_from + needed, f"the checkpoint must be silent for {format_duration(needed)}")


def _last_signs(observation: Observation) -> list[datetime]:
    signs = [observation.last_move, observation.current.finished if observation.current else None]
    return [sign for sign in signs if sign is not None]
